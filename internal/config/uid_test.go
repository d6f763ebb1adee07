package config_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
)

// Every parameter of uid-generator, and its effect on a server.
func TestUIDParameters(t *testing.T) {
	epoch := time.Date(2016, 5, 20, 0, 0, 0, 0, time.FixedZone("", 8*60*60))
	uid := snowflake.Layout{Epoch: epoch, Tick: time.Second, TimeBits: 31, WorkerBits: 19, SequenceBits: 13}
	ring := snowflake.Reserve{Size: 65536, Refill: 50}
	cached := snowflake.Options{MaxAhead: time.Minute, Wait: 3 * time.Second, Reserve: ring}
	type scheme struct {
		Layout     issuer.NamedLayout
		Generators snowflake.Options
	}
	with := func(change func(*scheme)) scheme {
		s := scheme{issuer.NamedLayout{Name: "uid", Layout: uid, Scheme: "uid"}, cached}
		change(&s)
		return s
	}
	tests := map[string]struct {
		yaml string
		want scheme
	}{
		"nothing said": {"uid: {enable: true}", with(func(*scheme) {})},
		"timeBits, workerBits, seqBits": {"uid: {layout: wide, time_bits: 31, worker_bits: 23, seq_bits: 9}", with(func(s *scheme) {
			s.Layout.Name, s.Layout.WorkerBits, s.Layout.SequenceBits, s.Generators.Reserve.Size = "wide", 23, 9, 4096
		})},
		"the README's other split": {"uid: {layout: w27, time_bits: 30, worker_bits: 27, seq_bits: 6}", with(func(s *scheme) {
			s.Layout.Name, s.Layout.TimeBits, s.Layout.WorkerBits, s.Layout.SequenceBits, s.Generators.Reserve.Size = "w27", 30, 27, 6, 512
		})},
		"epochStr": {"uid: {layout: sample, epoch: 2016-09-20T00:00:00+08:00, time_bits: 29, worker_bits: 21}", with(func(s *scheme) {
			s.Layout.Name, s.Layout.TimeBits, s.Layout.WorkerBits = "sample", 29, 21
			s.Layout.Epoch = time.Date(2016, 9, 20, 0, 0, 0, 0, epoch.Location())
		})},
		"boostPower":                {"uid: {boost_power: 4}", with(func(s *scheme) { s.Generators.Reserve.Size = 131072 })},
		"paddingFactor":             {"uid: {padding_factor: 75}", with(func(s *scheme) { s.Generators.Reserve.Refill = 75 })},
		"scheduleInterval":          {"uid: {schedule_interval: 60s}", with(func(s *scheme) { s.Generators.Reserve.Interval = time.Minute })},
		"rejectedTakeBufferHandler": {"uid: {rejected_take: error}", with(func(s *scheme) { s.Generators.Reject = true })},
		"DefaultUidGenerator": {"uid: {mode: default}", with(func(s *scheme) {
			s.Layout.RandomStart, s.Generators.MaxAhead, s.Generators.Reserve = 512, -1, snowflake.Reserve{}
		})},
		"the bound on borrowing": {"uid: {max_ahead: 10s, wait: 1s}", with(func(s *scheme) {
			s.Generators.MaxAhead, s.Generators.Wait = 10*time.Second, time.Second
		})},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, config.Source{File: write(t, "leaf.yaml", tt.yaml+"\n")})
			got := cfg.UID.Served()
			if len(got) != 1 || !cfg.ServesUID() {
				t.Fatalf("%+v", got)
			}
			if diff := cmp.Diff(tt.want, scheme{got[0], cfg.UID.Generators()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if _, err := snowflake.New(got[0].Layout, new(cfg.UID.Generators())); err != nil {
				t.Error(err)
			}
		})
	}
}

// A ring larger than the number of all IDs is not an overflow.
func TestUIDLargestRing(t *testing.T) {
	cfg := load(t, config.Source{File: write(t, "leaf.yaml", "uid: {layout: x, time_bits: 31, worker_bits: 1, seq_bits: 31, boost_power: 16}\n")})
	if got := cfg.UID.Generators().Reserve.Size; got != 1<<47 || got > math.MaxInt64/2 {
		t.Error(got)
	}
}

func TestUIDProblems(t *testing.T) {
	for yaml, want := range map[string][]string{
		"{enable: yes}":                                    {`FILE:1: uid.enable: "yes" is not one of auto, true, false`},
		"{mode: chached}":                                  {`FILE:1: uid.mode: "chached" is not one of cached, default; did you mean cached?`},
		"{rejected_take: throw}":                           {`FILE:1: uid.rejected_take: "throw" is not one of wait, error`},
		"{boost_power: 0}":                                 {"FILE:1: uid.boost_power: 0 is not in 1 … 16"},
		"{padding_factor: 100}":                            {"FILE:1: uid.padding_factor: 100 is not in 1 … 99"},
		"{schedule_interval: -1s}":                         {"FILE:1: uid.schedule_interval: -1s is below 0s"},
		"{max_ahead: 1h, wait: 0s}":                        {"FILE:1: uid.max_ahead: 1h0m0s is not in 1s … 1m", "FILE:1: uid.wait: 0s is not above 0"},
		"{layout: x, seq_bits: 12}":                        {"FILE:1: uid.time_bits: time_bits, worker_bits and seq_bits are 62 together, not 63"},
		"{seq_bits: 14}":                                   {"FILE:1: uid.time_bits: 31 time, 19 worker and 14 sequence bits; needed are at least 1, 0 and 0, at most 63 in all"},
		"{layout: x, time_bits: 28, worker_bits: 22}":      {"FILE:1: uid.time_bits: this layout ran out on 2024-11-20"},
		"{epoch: 2016-05-20}":                              {`FILE:1: uid.epoch: "2016-05-20" is not a time with its zone such as 2026-01-01T00:00:00Z or 2016-05-20T00:00:00+08:00`},
		"{layout: x, epoch: 2099-01-01T00:00:00Z}":         {"FILE:1: uid.time_bits: the epoch is in the future, on 2099-01-01"},
		"{worker_bits: 18, seq_bits: 14}":                  {"FILE:1: uid.layout: uid is the name of a built-in layout with other values: choose another name, which must stand for these values from then on"},
		"{layout: a b}":                                    {"FILE:1: uid.layout: the name of a layout is made of 1 to 32 letters, digits, dots, dashes and underscores"},
		"{layout: x, epoch: 2016-05-20T00:00:00.5Z}":       {"FILE:1: uid.epoch: the epoch is not a whole second"},
		"{enable: true}\nsnowflake: {layouts: {uid: uid}}": {"FILE:1: uid.enable: snowflake has a layout uid too: give that of uid another name"},
		"{enable: true}\nsnowflake: {layout: js53, layouts: {other: uid}}": {"FILE:1: uid.enable: the layout other of snowflake has the same values: both would issue the same IDs"},
	} {
		fails(t, config.Source{File: write(t, "leaf.yaml", "uid: "+yaml+"\n")}, want...)
	}
}

// auto means true where neither a store nor a registry is named.
func TestUIDAuto(t *testing.T) {
	for yaml, want := range map[string]bool{
		"":                       true,
		"store: mysql://db/leaf": false,
		"workers: mysql://db/leaf?layout=worker_node":             true,
		"snowflake: {layouts: {other: uid}}":                      false,
		"snowflake: {layouts: {js: js53}}":                        false,
		"{snowflake: {layouts: {js: js53}}, uid: {enable: true}}": true,
		"workers: static:1":                                       false,
		"uid: {enable: false}":                                    false,
		"{store: mysql://db/leaf, uid: {enable: true}}":           true,
	} {
		if got := load(t, config.Source{File: write(t, "leaf.yaml", yaml+"\n")}).ServesUID(); got != want {
			t.Errorf("%s: served: %t", yaml, got)
		}
	}
	java := load(t, config.Source{File: write(t, "leaf.properties", "leaf.segment.enable=true\nleaf.jdbc.url=jdbc:mysql://db/leaf\nleaf.snowflake.enable=false\n")})
	if java.ServesUID() {
		t.Error("a leaf.properties asks for no uid")
	}
}

// A year before a layout ends the log says so.
func TestUIDEnding(t *testing.T) {
	// 28 bits of seconds are 8.5 years
	epoch := time.Now().AddDate(0, 0, -(1<<28)/86400+200).UTC().Format("2006-01-02T00:00:00Z")
	_, notices, err := config.Load(config.Source{File: write(t, "leaf.yaml", "uid: {layout: x, time_bits: 28, worker_bits: 22, epoch: "+epoch+"}\n")})
	if err != nil || len(notices) != 1 {
		t.Errorf("%q, %v", notices, err)
	}
}
