package config_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
)

const shop = "{epoch: 2026-01-01T08:00:00+08:00, tick: 10ms, time: 40, worker: 12, sequence: 11, random_start: 7}"

func preset(t *testing.T, name string) snowflake.Layout {
	t.Helper()
	l, ok := snowflake.Preset(name)
	if !ok {
		t.Fatalf("there is no preset %s", name)
	}
	return l
}

func TestServedLayouts(t *testing.T) {
	shopLayout := snowflake.Layout{Epoch: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Tick: 10 * time.Millisecond, TimeBits: 40, WorkerBits: 12, SequenceBits: 11}
	leafLayout, js53 := preset(t, "leaf"), preset(t, "js53")
	tests := map[string]struct {
		text string
		want issuer.Layouts
	}{
		"nothing said":     {"", issuer.Layouts{{Name: "leaf", Layout: leafLayout}}},
		"another preset":   {"layout: js53", issuer.Layouts{{Name: "js53", Layout: js53}}},
		"beside":           {"layouts: {shop: " + shop + ", js53: js53}", issuer.Layouts{{Name: "leaf", Layout: leafLayout}, {Name: "js53", Layout: js53}, {Name: "shop", Layout: shopLayout, RandomStart: 7}}},
		"own default":      {"layout: shop\n  layouts: {shop: " + shop + "}", issuer.Layouts{{Name: "shop", Layout: shopLayout, RandomStart: 7}}},
		"preset and start": {"layouts: {leaf: {preset: leaf, random_start: 100}}", issuer.Layouts{{Name: "leaf", Layout: leafLayout, RandomStart: 100}}},
		"tick by default":  {"layouts: {a: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 5, sequence: 7}}", issuer.Layouts{{Name: "leaf", Layout: leafLayout}, {Name: "a", Layout: js53}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, config.Source{File: write(t, "leaf.yaml", "snowflake:\n  "+tt.text+"\n")})
			if diff := cmp.Diff(tt.want, cfg.Snowflake.Served()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if err := cfg.Validate(); len(err) > 0 {
				t.Error(err)
			}
		})
	}
}

func TestLayoutsFromEnvironment(t *testing.T) {
	env := map[string]string{"LEAF_SNOWFLAKE_LAYOUTS": "{shop: " + shop + "}", "LEAF_SNOWFLAKE_LAYOUT": "shop", "LEAF_SNOWFLAKE_MAX_AHEAD": "300ms"}
	cfg := load(t, config.Source{Environ: environ(env)})
	if got := cfg.Snowflake.Served(); len(got) != 1 || got[0].Name != "shop" || got[0].WorkerBits != 12 || cfg.Snowflake.MaxAhead != 300*time.Millisecond {
		t.Errorf("%+v", cfg.Snowflake)
	}
	const noEpoch = "\nLEAF_SNOWFLAKE_LAYOUTS: snowflake.layouts.a: the epoch is missing: write the time that ticks are counted from, such as 2026-01-01T00:00:00Z"
	for text, want := range map[string]string{
		"shop":              `LEAF_SNOWFLAKE_LAYOUTS: "shop" is not a list such as {game: js53, shop: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 10, sequence: 12}}`,
		"{a: ":              `LEAF_SNOWFLAKE_LAYOUTS: "{a: " is not a list such as {game: js53, shop: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 10, sequence: 12}}`,
		"{a: {tock: 1ms}}":  "LEAF_SNOWFLAKE_LAYOUTS: snowflake.layouts.a.tock: no such key; did you mean snowflake.layouts.a.tick?" + noEpoch,
		"{a: js35}":         `LEAF_SNOWFLAKE_LAYOUTS: snowflake.layouts.a: "js35" is not one of js53, leaf, uid, uid-baidu; did you mean js53?`,
		"{a: {tick: soon}}": `LEAF_SNOWFLAKE_LAYOUTS: snowflake.layouts.a.tick: "soon" is not a duration such as 10m, 1.5s or 500ms` + noEpoch,
	} {
		fails(t, config.Source{Environ: environ(map[string]string{"LEAF_SNOWFLAKE_LAYOUTS": text})}, strings.Split(want, "\n")...)
	}
}

func TestLayoutProblems(t *testing.T) {
	future := time.Now().AddDate(0, 0, 2).UTC()
	tests := map[string]struct {
		text string
		want []string
	}{
		"unknown default": {"layout: baidu", []string{`FILE:2: snowflake.layout: "baidu" is not one of js53, leaf, uid, uid-baidu`}},
		"typo":            {"layouts:\n    a: {epoch: 2026-01-01T00:00:00Z, tiem: 41, worker: 1, sequence: 1}", []string{"FILE:3: snowflake.layouts.a.tiem: no such key; did you mean snowflake.layouts.a.time?", "FILE:3: snowflake.layouts.a: time, worker and sequence are the numbers of bits, and one is missing: 0 is a number too"}},
		"no epoch":        {"layouts:\n    a: {time: 41, worker: 1, sequence: 1}", []string{"FILE:3: snowflake.layouts.a: the epoch is missing: write the time that ticks are counted from, such as 2026-01-01T00:00:00Z"}},
		"no zone":         {"layouts:\n    a: {epoch: 2026-01-01T00:00:00, time: 41, worker: 1, sequence: 1}", []string{`FILE:3: snowflake.layouts.a.epoch: "2026-01-01T00:00:00" is not a time with its zone such as 2026-01-01T00:00:00Z or 2016-05-20T00:00:00+08:00`, "FILE:3: snowflake.layouts.a: the epoch is missing: write the time that ticks are counted from, such as 2026-01-01T00:00:00Z"}},
		"tick":            {"layouts:\n    a: {epoch: 2026-01-01T00:00:00Z, tick: 7ms, time: 41, worker: 1, sequence: 1}", []string{"FILE:3: snowflake.layouts.a: a tick of 7ms is not one of 1ms, 10ms, 1s"}},
		"bits":            {"layouts:\n    a: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 11, sequence: 12}", []string{"FILE:3: snowflake.layouts.a: 41 time, 11 worker and 12 sequence bits; needed are at least 1, 0 and 0, at most 63 in all"}},
		"future":          {"layouts:\n    a: {epoch: " + future.Format(time.RFC3339) + ", time: 41, worker: 1, sequence: 1}", []string{"FILE:3: snowflake.layouts.a: the epoch is in the future, on " + future.Format(time.DateOnly)}},
		"ran out":         {"layouts:\n    a: {epoch: 2016-05-20T00:00:00+08:00, tick: 1s, time: 28, worker: 22, sequence: 13}", []string{"FILE:3: snowflake.layouts.a: this layout ran out on 2024-11-20"}},
		"built-in name":   {"layouts:\n    leaf: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 10, sequence: 12}", []string{"FILE:3: snowflake.layouts.leaf: leaf is the name of a built-in layout with other values: choose another name, which must stand for these values from then on"}},
		"name":            {"layouts:\n    a b: leaf", []string{"FILE:3: snowflake.layouts.a b: the name of a layout is made of 1 to 32 letters, digits, dots, dashes and underscores"}},
		"twice":           {"layouts:\n    a: leaf\n    a: leaf", []string{"FILE:4: snowflake.layouts.a: this key is on line 3 already"}},
		"no sequence":     {"layouts:\n    a: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 10}", []string{"FILE:3: snowflake.layouts.a: time, worker and sequence are the numbers of bits, and one is missing: 0 is a number too"}},
		"preset and more": {"layouts:\n    a: {preset: leaf, time: 3}", []string{"FILE:3: snowflake.layouts.a: preset goes with random_start only"}},
		"start":           {"layouts:\n    a: {epoch: 2026-01-01T00:00:00Z, time: 41, worker: 1, sequence: 3, random_start: 9}", []string{"FILE:3: snowflake.layouts.a: random_start 9 is not in 0 … 8"}},
		"alike":           {"layouts:\n    a: {preset: leaf, random_start: 9}", []string{"FILE:3: snowflake.layouts.a: it has the values of leaf, so both get their IDs from one generator: give both the same random_start"}},
		"list":            {"layouts: [leaf]", []string{"FILE:2: snowflake.layouts: this must be a list of keys with their values"}},
		"list of lists":   {"layouts:\n    a: [leaf]", []string{"FILE:3: snowflake.layouts.a: this must be a list of keys with their values", `FILE:3: snowflake.layouts.a: the epoch is missing: write the time that ticks are counted from, such as 2026-01-01T00:00:00Z`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			fails(t, config.Source{File: write(t, "leaf.yaml", "snowflake:\n  "+tt.text+"\n")}, tt.want...)
		})
	}
	load(t, config.Source{File: write(t, "leaf.yaml", "snowflake: {enable: false, layout: uid}\n")})
}

func TestTooManyLayouts(t *testing.T) {
	list := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "    l%d: leaf\n", i)
		}
		return "snowflake:\n  layouts:\n" + b.String()
	}
	load(t, config.Source{File: write(t, "leaf.yaml", list(15))})
	fails(t, config.Source{File: write(t, "leaf.yaml", list(16))}, "FILE:2: snowflake.layouts: 16 layouts are more than 15")
}

// A notice warns of a layout's end in time.
func TestLayoutEndsSoon(t *testing.T) {
	span := time.Duration(1<<31) * time.Second
	soon := time.Now().Add(-span).AddDate(0, 6, 0).UTC()
	text := "snowflake: {layouts: {old: {epoch: " + soon.Format(time.RFC3339) + ", tick: 1s, time: 31, worker: 10, sequence: 12}}}\n"
	_, notices, err := config.Load(config.Source{File: write(t, "leaf.yaml", text)})
	want := []string{"the snowflake layout old runs out on " + soon.Truncate(time.Second).Add(span-time.Second).Format(time.DateOnly) + ": after that it issues no ID"}
	if diff := cmp.Diff(want, notices); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
