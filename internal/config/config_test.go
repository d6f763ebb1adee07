package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// write puts text into a file of that name in a fresh directory.
func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func environ(vars map[string]string) []string {
	var list []string
	for name, value := range vars {
		list = append(list, name+"="+value)
	}
	return list
}

// javaURLs are those of the server.
var javaURLs = config.JavaURLs{Store: drivers.FromJDBC, Workers: drivers.FromCurator}

func load(t *testing.T, src config.Source) config.Config {
	t.Helper()
	src.Java = javaURLs
	cfg, _, err := config.Load(src)
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	return cfg
}

// fails checks that Load refuses src with exactly these lines, in which FILE is the name of the
// file.
func fails(t *testing.T, src config.Source, want ...string) {
	t.Helper()
	src.Java = javaURLs
	_, _, err := config.Load(src)
	if err == nil {
		t.Fatal("Load accepted it")
	}
	if _, ok := errors.AsType[config.Problems](err); !ok {
		t.Errorf("Load: error %v is not a Problems", err)
	}
	text := err.Error()
	if src.File != "" {
		text = strings.ReplaceAll(text, src.File, "FILE")
	}
	got := strings.Split(text, "\n")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNothingSaidIsDefault(t *testing.T) {
	if diff := cmp.Diff(config.Default(), load(t, config.Source{})); diff != "" {
		t.Errorf("Load of nothing (-want +got):\n%s", diff)
	}
	if err := config.Default().Validate(); len(err) > 0 {
		t.Errorf("Default is invalid: %v", err)
	}
}

func TestEmptyFiles(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "segment:\nlog:\n", "store:\n"} {
		cfg := load(t, config.Source{File: write(t, "leaf.yaml", text)})
		want := config.Default()
		want.EmptyFile = !strings.Contains(text, ":")
		if diff := cmp.Diff(want, cfg); diff != "" {
			t.Errorf("Load of %q (-want +got):\n%s", text, diff)
		}
	}
}

func TestOrderOfLayers(t *testing.T) {
	file := write(t, "leaf.yaml", "listen: :1\ndata: from-file\nsegment:\n  wait: 2s\n  max_stock: 1_000\nlog: {level: debug}\n")
	cfg := load(t, config.Source{
		File:    file,
		Environ: environ(map[string]string{"LEAF_LISTEN": ":2", "LEAF_DATA": "from-env", "LEAF_SEGMENT_WAIT": "3s", "LEAF_LOG_FORMAT": "json"}),
		Flags:   map[string]string{"listen": ":3"},
	})
	want := config.Default()
	want.Listen = ":3"
	want.Data = "from-env"
	want.Segment.Wait = 3 * time.Second
	want.Segment.MaxStock = 1000
	want.Log = config.Log{Level: "debug", Format: "json"}
	if diff := cmp.Diff(want, cfg); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFileFromEnvironment(t *testing.T) {
	file := write(t, "leaf.yaml", "data: there\n")
	cfg := load(t, config.Source{Environ: environ(map[string]string{"LEAF_CONFIG": file})})
	if cfg.Data != "there" {
		t.Errorf("data = %q: LEAF_CONFIG was not read", cfg.Data)
	}
}

func TestYAMLProblems(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"typo":           {"listne: :80\n", []string{"FILE:1: listne: no such key; did you mean listen?"}},
		"typo inside":    {"\nsegment:\n  polcy: leaf\n", []string{"FILE:3: segment.polcy: no such key; did you mean segment.policy?"}},
		"wrong section":  {"policy: leaf\n", []string{"FILE:1: policy: no such key; did you mean segment.policy?"}},
		"typo section":   {"segmnet: {}\n", []string{"FILE:1: segmnet: no such key; did you mean segment?"}},
		"nothing near":   {"quux: 1\n", []string{"FILE:1: quux: no such key"}},
		"twice":          {"data: a\ndata: b\n", []string{"FILE:2: data: this key is on line 1 already"}},
		"duration":       {"shutdown_timeout: 10\n", []string{`FILE:1: shutdown_timeout: "10" is not a duration such as 10m, 1.5s or 500ms`}},
		"number":         {"max_batch: many\n", []string{`FILE:1: max_batch: "many" is not a whole number`}},
		"fraction":       {"max_batch: 1.5\n", []string{`FILE:1: max_batch: "1.5" is not a whole number`}},
		"too large":      {"segment: {max_stock: 99999999999999999999}\n", []string{"FILE:1: segment.max_stock: 99999999999999999999 is too large"}},
		"bool":           {"segment: {enable: yes}\n", []string{`FILE:1: segment.enable: "yes" is neither true nor false`}},
		"list":           {"store: [a, b]\n", []string{"FILE:1: store: this must be a single value"}},
		"scalar section": {"segment: on\n", []string{"FILE:1: segment: this must be a list of keys with their values"}},
		"no mapping":     {"- a\n", []string{"FILE:1: this must be a list of keys with their values"}},
		"two documents":  {"data: a\n---\ndata: b\n", []string{"FILE: line 2: a second YAML document begins; there must be one"}},
		"both stores":    {"store: sqlite:a\nstore_file: b\n", []string{"FILE:2: store_file: give either store or store_file, not both"}},
		"policy":         {"segment:\n  policy: laef\n", []string{`FILE:2: segment.policy: "laef" is not one of adaptive, leaf; did you mean leaf?`}},
		"several": {"listen: nowhere\nmax_batch: 0\nlog:\n  level: loud\n", []string{
			`FILE:1: listen: "nowhere" is not HOST:PORT, such as 127.0.0.1:8080, or :8080 for all interfaces`,
			"FILE:2: max_batch: 0 is not in 1 … 2147483647",
			`FILE:4: log.level: "loud" is not one of debug, info, warn, error`,
		}},
		"ranges": {"segment: {max_stock: 0, max_calls: -1, wait: -1s, regression_jump: -5}\n", []string{
			"FILE:1: segment.max_stock: 0 is not in 1 … 1099511627776",
			"FILE:1: segment.wait: -1s is not above 0",
			"FILE:1: segment.max_calls: -1 is not in 1 … 2147483647",
			"FILE:1: segment.regression_jump: -5 is below 0",
		}},
		"nothing to serve": {"segment: {enable: false}\nsnowflake: {enable: false}\nuid: {enable: false}\n", []string{"FILE:1: segment.enable: nothing is left to serve: segment, snowflake and uid are all off"}},
		"both workers":     {"workers: static:1\nworkers_file: b\n", []string{"FILE:2: workers_file: give either workers or workers_file, not both"}},
		"snowflake ranges": {"snowflake: {max_ahead: 0s, wait: 0s, clock_tolerance: -1s, horizon: 1s}\n", []string{
			"FILE:1: snowflake.max_ahead: 0s is not in 1ms … 1m",
			"FILE:1: snowflake.wait: 0s is not above 0",
			"FILE:1: snowflake.clock_tolerance: -1s is not above 0",
			"FILE:1: snowflake.horizon: 1s is not in 1m … 24h",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			fails(t, config.Source{File: write(t, "leaf.yaml", test.text)}, test.want...)
		})
	}
}

func TestBrokenYAML(t *testing.T) {
	for _, text := range []string{"a: [", "\tx: 1", "a: *nowhere", "\xff\xfe\x00", "a: b: c"} {
		_, _, err := config.Load(config.Source{File: write(t, "leaf.yaml", text)})
		if _, ok := errors.AsType[config.Problems](err); !ok {
			t.Errorf("Load of %q: error %v, want Problems", text, err)
		}
	}
}

func TestProblemsNameEnvironmentAndFlags(t *testing.T) {
	fails(t, config.Source{
		Environ: environ(map[string]string{"LEAF_LOG_LEVEL": "trace", "LEAF_MAX_BATCH": "x"}),
		Flags:   map[string]string{"listen": "8080"},
	},
		`LEAF_MAX_BATCH: "x" is not a whole number`,
		`--listen: "8080" is not HOST:PORT, such as 127.0.0.1:8080, or :8080 for all interfaces`,
		`LEAF_LOG_LEVEL: "trace" is not one of debug, info, warn, error`,
	)
}

func TestMissingFile(t *testing.T) {
	_, _, err := config.Load(config.Source{File: filepath.Join(t.TempDir(), "none.yaml")})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load: %v, want ErrNotExist", err)
	}
}

func TestStoreFile(t *testing.T) {
	secret := write(t, "url", "mysql://u:p@h/db\n")
	yaml := write(t, "leaf.yaml", "store_file: "+secret+"\n")
	if cfg := load(t, config.Source{File: yaml}); cfg.Store != "mysql://u:p@h/db" {
		t.Errorf("store = %q, want the line of store_file", cfg.Store)
	}
	later := config.Source{File: yaml, Environ: environ(map[string]string{"LEAF_STORE": "sqlite:x"})}
	if cfg := load(t, later); cfg.Store != "sqlite:x" {
		t.Errorf("store = %q, want LEAF_STORE to overrule store_file of the file", cfg.Store)
	}
	for _, text := range []string{"", "\n", "a\nb\n"} {
		file := write(t, "url", text)
		fails(t, config.Source{Environ: environ(map[string]string{"LEAF_STORE_FILE": file})},
			"LEAF_STORE_FILE: "+file+": the file must hold one line, the URL")
	}
	fails(t, config.Source{Environ: environ(map[string]string{"LEAF_STORE_FILE": secret + "-none"})},
		"LEAF_STORE_FILE: open "+secret+"-none: no such file or directory")
}

func TestWorkersFile(t *testing.T) {
	secret := write(t, "url", "mysql://u:p@h/workers\n")
	yaml := write(t, "leaf.yaml", "store: mysql://h/ids\nworkers_file: "+secret+"\n")
	if cfg := load(t, config.Source{File: yaml}); cfg.Workers != "mysql://u:p@h/workers" || cfg.Store != "mysql://h/ids" {
		t.Errorf("workers = %q, store = %q", cfg.Workers, cfg.Store)
	}
	env := environ(map[string]string{"LEAF_WORKERS": "static:1"})
	if cfg := load(t, config.Source{File: yaml, Environ: env}); cfg.Workers != "static:1" {
		t.Errorf("workers = %q, want LEAF_WORKERS to overrule workers_file of the file", cfg.Workers)
	}
	if cfg := load(t, config.Source{File: yaml, Environ: env, Flags: map[string]string{"workers": "static:2"}}); cfg.Workers != "static:2" {
		t.Errorf("workers = %q, want --workers to win", cfg.Workers)
	}
	file := write(t, "url", "a\nb\n")
	fails(t, config.Source{Environ: environ(map[string]string{"LEAF_WORKERS_FILE": file})},
		"LEAF_WORKERS_FILE: "+file+": the file must hold one line, the URL")
}

// The Redis protocol can be turned off, in YAML without quotes.
func TestRESP(t *testing.T) {
	for text, want := range map[string]string{"off": config.Off, `"off"`: config.Off, ":6379": ":6379", `"[::1]:0"`: "[::1]:0"} {
		file := write(t, "leaf.yaml", "resp: "+text+"\n")
		if got := load(t, config.Source{File: file}).RESP; got != want {
			t.Errorf("resp: %s is %q, want %q", text, got, want)
		}
	}
	fails(t, config.Source{Flags: map[string]string{"resp": "no"}}, `--resp: "no" is not HOST:PORT, such as 127.0.0.1:8080, or :8080 for all interfaces, nor off`)
	fails(t, config.Source{Flags: map[string]string{"resp": ""}}, `--resp: "" is not HOST:PORT, such as 127.0.0.1:8080, or :8080 for all interfaces, nor off`)
}

// The defaults are those of the packages that the settings are for.
func TestDefaults(t *testing.T) {
	uid, _ := snowflake.Preset(issuer.UID)
	want := config.Config{
		Listen: "127.0.0.1:8080", RESP: "127.0.0.1:6380", GRPC: config.Off, Data: "./leaf-data", ClusterQuota: 2 << 30, ReadyFor: 10 * time.Second, ShutdownTimeout: 10 * time.Second, MaxBatch: issuer.DefaultMaxBatch, MaxRange: issuer.DefaultMaxRange,
		Limits: config.Limits{Connections: 20_000, Tags: config.TagLimits{}},
		Segment: config.Segment{
			Enable: true, Policy: config.PolicyAdaptive, OutageBudget: segment.DefaultOutageBudget, MaxStock: segment.DefaultMaxStock, Wait: segment.DefaultWait,
			CallTimeout: segment.DefaultCallTimeout, MaxCalls: segment.DefaultMaxCalls, CheckInterval: segment.DefaultCheckInterval,
			MaskKeys: config.MaskKeys{},
		},
		Snowflake: config.Snowflake{
			Enable: true, Layout: issuer.DefaultLayout, Layouts: config.Layouts{}, MaxAhead: worker.DefaultMaxAhead, Wait: snowflake.DefaultWait,
			ClockTolerance: worker.DefaultTolerance, Horizon: worker.DefaultHorizon,
		},
		UID: config.UID{
			Enable: config.EnableAuto, Mode: config.ModeCached, Layout: issuer.UID, Epoch: uid.Epoch,
			TimeBits: uid.TimeBits, WorkerBits: uid.WorkerBits, SeqBits: uid.SequenceBits, BoostPower: 3, PaddingFactor: snowflake.DefaultRefill,
			RejectedTake: config.RejectedWait, MaxAhead: time.Minute, Wait: 3 * time.Second,
		},
		Log: config.Log{Level: "info", Format: "auto"},
	}
	if diff := cmp.Diff(want, config.Default()); diff != "" {
		t.Errorf("the example differs from the defaults (-want +got):\n%s", diff)
	}
}

// A key that the example lacks would have neither documentation nor default.
func TestExampleNamesEveryKey(t *testing.T) {
	for _, key := range config.KeyPaths() {
		name := key[strings.LastIndexByte(key, '.')+1:]
		indent := strings.Repeat("  ", strings.Count(key, "."))
		if !strings.Contains(config.Example(), "\n"+indent+name+":") {
			t.Errorf("the example lacks %s", key)
		}
	}
}

func FuzzYAML(f *testing.F) {
	f.Add(config.Example())
	f.Add("a: &a {a: *a}")
	f.Add("snowflake:\n  layout: a\n  layouts: &l\n    a: {preset: leaf, random_start: 3}\n    b: *l\n    c: {epoch: 2026-01-01T00:00:00Z, tick: 1s, time: 31}")
	f.Add("segment: &s\n  wait: 1s\nlog: *s\n? [x]\n: y")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, _, err := config.Load(config.Source{File: write(t, "leaf.yaml", text)})
		if err == nil && cfg.StoreFile == "" && len(cfg.Validate()) > 0 {
			t.Errorf("Load accepted an invalid configuration: %v", cfg.Validate())
		}
	})
}

// No max_ahead exceeds LargestMaxAhead, which a static worker ID waits for.
func TestLargestMaxAhead(t *testing.T) {
	found := 0
	for _, section := range []any{config.Snowflake{}, config.UID{}} {
		field, _ := reflect.TypeOf(section).FieldByName("MaxAhead")
		_, largest, _ := strings.Cut(field.Tag.Get("check"), "..")
		if d, err := time.ParseDuration(largest); err != nil || d > config.LargestMaxAhead {
			t.Errorf("%T: max_ahead up to %q, %v", section, largest, err)
		}
		found++
	}
	for _, section := range reflect.VisibleFields(reflect.TypeFor[config.Config]()) {
		if section.Type.Kind() != reflect.Struct {
			continue
		}
		if _, ok := section.Type.FieldByName("MaxAhead"); ok {
			found--
		}
	}
	if found != 0 {
		t.Error("a section with a max_ahead is missing above")
	}
}
