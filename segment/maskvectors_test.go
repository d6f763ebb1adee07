package segment_test

import (
	"encoding/json"
	"math"
	"os"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/mask"
	"github.com/leaf-id/leaf/segment"
)

// A set hides the numbers as the second implementation does, which computed the vectors.
func TestMaskVectors(t *testing.T) {
	var file struct {
		Masks []struct {
			Domain, Series, Key string
			Numbers             []struct {
				N      int64 `json:",string"`
				Hidden int64 `json:",string"`
			}
		}
	}
	data, err := os.ReadFile("../api/vectors/masks.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, v := range file.Masks {
		if v.Series == "" {
			continue // no tag has that name
		}
		key, err := mask.ParseKey(v.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range v.Numbers {
			if want.N == math.MaxInt64 {
				continue // no range ends behind it
			}
			store := memory.New().Store()
			tag := segment.Tag{Name: v.Series, MaxID: want.N, Step: 1, Options: segment.TagOptions{segment.OptionMask: "k1:" + v.Domain + ":" + key.Fingerprint()}}
			if err := store.Create(t.Context(), tag); err != nil {
				t.Fatalf("%q: %v", v.Series, err)
			}
			set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{MaskKeys: segment.MaskKeys{"k1": key}}})
			if got, err := set.Next(t.Context(), v.Series); err != nil || got != want.Hidden {
				t.Errorf("%s, %q, %d: %d, %v, want %d", v.Domain, v.Series, want.N, got, err, want.Hidden)
			}
			if err := set.Close(t.Context()); err != nil {
				t.Error(err)
			}
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("%d numbers compared", compared)
	}
}

// A set gives each number of a domain once.
func TestMaskedDomain(t *testing.T) {
	testserver.Long(t)
	const all, batch = 1_000_000, 10_000
	set, store := maskedSet(t, drivertest.MaskKeys, 0)
	seen := make([]bool, all)
	for range all / batch {
		ranges, err := set.Take(t.Context(), "order", nil, batch)
		if err != nil {
			t.Fatal(err)
		}
		if len(ranges) != batch {
			t.Fatalf("%d numbers", len(ranges))
		}
		for _, r := range ranges {
			if r.Len() != 1 || r.Start < 0 || r.Start >= all || seen[r.Start] {
				t.Fatalf("got %v, or got it twice", r)
			}
			seen[r.Start] = true
		}
	}
	_, err := set.Next(t.Context(), "order")
	wantError(t, err, leaf.ErrOverflow)
	if n := counter(t, store); n < all {
		t.Errorf("the counter is at %d", n)
	}
}
