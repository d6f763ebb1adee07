package issuer_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

func named(t *testing.T, name, preset string) issuer.NamedLayout {
	t.Helper()
	l, ok := snowflake.Preset(preset)
	if !ok {
		t.Fatalf("no preset %s", preset)
	}
	return issuer.NamedLayout{Name: name, Layout: l}
}

func newTimes(t *testing.T, layouts ...issuer.NamedLayout) *issuer.Times {
	t.Helper()
	times, err := issuer.NewTimes(issuer.Snowflake, layouts, snowflake.Options{Wait: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	return times
}

// begin has everything issue under worker 3.
func begin(times *issuer.Times) {
	for _, g := range times.Generators() {
		g.Begin(worker.Unfenced(3, time.Time{}, time.Time{}))
	}
}

func TestKeySelectsLayout(t *testing.T) {
	layouts := issuer.Layouts{named(t, "leaf", "leaf"), named(t, "js", "js53")}
	times := newTimes(t, layouts...)
	begin(times)
	ids := issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(times)}, nil)
	for key, layout := range map[string]string{"leaf": "leaf", "js": "js", "JS": "leaf", "order": "leaf", "": "leaf"} {
		id, err := ids.Next(t.Context(), issuer.Snowflake, key)
		if err != nil {
			t.Fatal(err)
		}
		more, err := ids.Take(t.Context(), issuer.Snowflake, key, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []int64{id.Number, more.Ranges[0].Start} {
			d, err := layouts.Decode(layout, id)
			if err != nil || d.Worker != 3 || time.Since(d.Time).Abs() > time.Minute {
				t.Errorf("key %q: %d is no ID of layout %s made just now: %+v, %v", key, id, layout, d, err)
			}
		}
	}
	for _, label := range []string{strings.Repeat("k", 129), "a\x00", "\xff"} {
		if _, err := ids.Next(t.Context(), issuer.Snowflake, label); err != nil {
			t.Errorf("key %q: %v", label, err)
		}
	}
}

// Two names of one layout would issue the same IDs from two generators.
func TestEqualLayoutsShareGenerator(t *testing.T) {
	times := newTimes(t, named(t, "leaf", "leaf"), named(t, "shop", "leaf"), named(t, "js", "js53"))
	if got := len(times.Generators()); got != 2 {
		t.Fatalf("%d generators for two layouts", got)
	}
	begin(times)
	seen := map[int64]bool{}
	for range 5000 {
		for _, key := range []string{"leaf", "shop"} {
			id, err := times.Next(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			if seen[id] {
				t.Fatalf("ID %d was issued under both names", id)
			}
			seen[id] = true
		}
	}
	var names []string
	for _, l := range times.Layouts() {
		names = append(names, l.Name)
	}
	if diff := cmp.Diff([]string{"leaf", "shop", "js"}, names); diff != "" {
		t.Errorf("recorded layouts: %s", diff)
	}
}

func TestTimesWithoutLease(t *testing.T) {
	times := newTimes(t, named(t, "leaf", "leaf"))
	if _, err := times.Next(t.Context(), "x"); !errors.Is(err, leaf.ErrNoLease) {
		t.Errorf("Next: %v, want ErrNoLease", err)
	}
	if _, err := times.Take(t.Context(), "x", nil, 2); !errors.Is(err, leaf.ErrNoLease) {
		t.Errorf("Take: %v, want ErrNoLease", err)
	}
}

func TestBadTimes(t *testing.T) {
	if _, err := issuer.NewTimes(issuer.Snowflake, nil, snowflake.Options{}); err == nil {
		t.Error("no layout was accepted")
	}
	if _, err := issuer.NewTimes(issuer.Snowflake, issuer.Layouts{{Name: "x"}}, snowflake.Options{}); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), "layout x") {
		t.Errorf("an empty layout: %v", err)
	}
}

func TestDecode(t *testing.T) {
	const id = int64(278898726177)<<22 | 39<<12 | 3448
	at := time.UnixMilli(1567733700834).UTC()
	leafParts := snowflake.Parts{Time: at, Tick: 278898726177, Worker: 39, Sequence: 3448}
	uidParts := snowflake.Parts{Time: time.Unix(1463673600+id>>32, 0).UTC(), Tick: id >> 32, Worker: id >> 13 & (1<<19 - 1), Sequence: id & 8191}
	shop := issuer.Layouts{named(t, "js", "js53"), named(t, "shop", "leaf")}
	tests := map[string]struct {
		layouts issuer.Layouts
		name    string
		want    issuer.Decoded
		err     string
	}{
		"uid":               {nil, "uid", issuer.Decoded{Layout: "uid", Parts: uidParts}, ""},
		"no layouts":        {nil, "", issuer.Decoded{Layout: "leaf", Parts: leafParts}, ""},
		"preset":            {shop, "leaf", issuer.Decoded{Layout: "leaf", Parts: leafParts}, ""},
		"named":             {shop, "shop", issuer.Decoded{Layout: "shop", Parts: leafParts}, ""},
		"default, too long": {shop, "", issuer.Decoded{Layout: "js"}, "is not in 0 … 9007199254740991"},
		"unknown":           {shop, "nope", issuer.Decoded{}, `there is no layout "nope"; there are: js, shop, js53, leaf, uid, uid-baidu`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := tt.layouts.Decode(tt.name, id)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if tt.err == "" && err != nil || tt.err != "" && (!errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), tt.err)) {
				t.Errorf("error %v, want %q", err, tt.err)
			}
		})
	}
}

func TestOffSaysWhy(t *testing.T) {
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(new(counter))}, &issuer.Options{Off: map[string]string{issuer.Snowflake: "no clock"}})
	err := ids.Check(issuer.Snowflake, "x")
	if want := `scheme not enabled: "snowflake": no clock`; !errors.Is(err, issuer.ErrSchemeOff) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestBuiltInLayoutThatIsNotServed(t *testing.T) {
	times := newTimes(t, named(t, "leaf", "leaf"))
	begin(times)
	ids := issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(times)}, nil)
	if _, err := ids.Next(t.Context(), issuer.Snowflake, "js53"); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("Next: %v", err)
	}
	if _, err := ids.Take(t.Context(), issuer.Snowflake, "js53", 2); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("Take: %v", err)
	}
}

// What uid-generator went on with when its layout had run out.
func TestDecodeNegative(t *testing.T) {
	got, err := issuer.Layouts(nil).Decode("uid-baidu", -7053501026443165696)
	at := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	if err != nil || got.Time.Sub(at).Abs() > 10*24*time.Hour || got.Tick != int64(uint64(1<<64-7053501026443165696)>>35) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := issuer.Layouts(nil).Decode("uid", -1); !errors.Is(err, leaf.ErrInvalid) {
		t.Error(err)
	}
}

// In uid every key but the layout's name is a label; in snowflake the name of a built-in
// layout is none.
func TestBuiltInNames(t *testing.T) {
	for scheme, want := range map[string]error{issuer.UID: leaf.ErrNoLease, issuer.Snowflake: leaf.ErrInvalid} {
		times, err := issuer.NewTimes(scheme, issuer.Layouts{named(t, "mine", "uid")}, snowflake.Options{Wait: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := times.Next(t.Context(), "leaf"); !errors.Is(err, want) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
