package kv_test

import (
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// older writes a cell as a release without identities does.
func older(t *testing.T, b kv.Backend, key kv.Key) {
	t.Helper()
	cell, err := b.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(cell.Value, `,"store":"`)
	if !found {
		t.Fatalf("%s holds %q, which has no identity", key, cell.Value)
	}
	_, rest, _ = strings.Cut(rest, `"`)
	if _, err := b.Swap(t.Context(), cell, before+rest); err != nil {
		t.Fatal(err)
	}
}

// An older release drops the identity from a counter's cell: the next grant restores it from
// the marker. A store that an older release created gets one, the same for all clients.
func TestIdentityIsRestored(t *testing.T) {
	for name, of := range map[string]func(*memory.Backend) kv.Backend{
		"swapping": func(b *memory.Backend) kv.Backend { return b },
		"adding":   func(b *memory.Backend) kv.Backend { return adding{b, 0} },
	} {
		t.Run(name, func(t *testing.T) {
			cells := memory.NewBackend()
			open := func() *kv.Store { return kv.New(of(cells), nil).Store() }
			if err := kv.New(of(cells), nil).Init(t.Context(), []segment.Tag{{Name: "order", MaxID: 1, Step: 10}}); err != nil {
				t.Fatal(err)
			}
			advance := func(s *kv.Store) string {
				t.Helper()
				g, err := s.Advance(t.Context(), "order", 1)
				if err != nil || g.Store == "" {
					t.Fatalf("got %+v, %v", g, err)
				}
				return g.Store
			}
			running := open()
			first := advance(running)
			older(t, cells, kv.Key{Kind: kv.Tags, Name: "order"})
			if got, other := advance(running), advance(open()); got != first || other != first {
				t.Errorf("after a write of an older release: %q and %q, want %q", got, other, first)
			}
			older(t, cells, kv.Key{Kind: kv.Tags, Name: "order"})
			older(t, cells, kv.Key{Kind: kv.Format, Name: "tags"})
			if got, other := advance(running), advance(open()); got == first || other != got {
				t.Errorf("a store of an older release: %q and %q, once %q", got, other, first)
			}
		})
	}
}
