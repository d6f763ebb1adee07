package issuer_test

import (
	"errors"
	"fmt"
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

// newTimes returns a scheme with a generator for each layout.
func newTimes(t *testing.T, scheme string, layouts ...issuer.NamedLayout) (times *issuer.Times, begin func()) {
	t.Helper()
	generators := map[string]*snowflake.Generator{}
	for _, l := range layouts {
		g, err := snowflake.New(l.Layout, &snowflake.Options{Wait: time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		generators[l.Name] = g
	}
	times = issuer.NewTimes(scheme, layouts, func(name string) *snowflake.Generator { return generators[name] },
		func(err error) error { return fmt.Errorf("explained: %w", err) })
	return times, func() { // under worker 3
		for _, g := range generators {
			g.Begin(worker.Unfenced(3, time.Time{}, time.Time{}))
		}
	}
}

func TestKeySelectsLayout(t *testing.T) {
	layouts := issuer.Layouts{named(t, "leaf", "leaf"), named(t, "js", "js53")}
	times, begin := newTimes(t, issuer.Snowflake, layouts...)
	begin()
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
				t.Errorf("key %q: %d is not an ID of layout %s made just now: %+v, %v", key, id, layout, d, err)
			}
		}
	}
	for _, label := range []string{strings.Repeat("k", 129), "a\x00", "\xff"} {
		if _, err := ids.Next(t.Context(), issuer.Snowflake, label); err != nil {
			t.Errorf("key %q: %v", label, err)
		}
	}
}

func TestTimesWithoutLease(t *testing.T) {
	times, _ := newTimes(t, issuer.Snowflake, named(t, "leaf", "leaf"))
	if _, err := times.Next(t.Context(), "x"); !errors.Is(err, leaf.ErrNoLease) || !strings.HasPrefix(err.Error(), "explained: ") {
		t.Errorf("Next: %v, want ErrNoLease, explained", err)
	}
	if _, err := times.Take(t.Context(), "x", nil, 2); !errors.Is(err, leaf.ErrNoLease) || !strings.HasPrefix(err.Error(), "explained: ") {
		t.Errorf("Take: %v, want ErrNoLease, explained", err)
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
			if got.Layout != "" && got.Of.TimeBits == 0 {
				t.Error("the layout has no bits")
			}
			got.Of = snowflake.Layout{}
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
	times, begin := newTimes(t, issuer.Snowflake, named(t, "leaf", "leaf"))
	begin()
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

// In uid every key except the layout's name is a label; in snowflake a built-in layout's name is not
// a label.
func TestBuiltInNames(t *testing.T) {
	for scheme, want := range map[string]error{issuer.UID: leaf.ErrNoLease, issuer.Snowflake: leaf.ErrInvalid} {
		times, _ := newTimes(t, scheme, named(t, "mine", "uid"))
		if _, err := times.Next(t.Context(), "leaf"); !errors.Is(err, want) {
			t.Errorf("%s: %v", scheme, err)
		}
	}
}
