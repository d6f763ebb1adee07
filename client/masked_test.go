package client_test

import (
	"errors"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/mask"
	"github.com/leaf-id/leaf/segment"
)

// TestMasked takes the numbers of a tag with a mask through a server with the key, and a relay
// without it: the client gets hidden numbers alone, and the counter moves by as many.
func TestMasked(t *testing.T) {
	store := memory.New().Store()
	tag := segment.Tag{Name: "order", MaxID: 1, Step: 1000, Options: segment.TagOptions{
		segment.OptionMask: "k1:10^9:" + drivertest.MaskKeys["k1"].Fingerprint(),
	}}
	if err := store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	keys := segment.SetOptions{Options: segment.Options{MaskKeys: drivertest.MaskKeys}}
	with := testleaf.Start(t, testleaf.Options{Store: store, Segment: keys})
	without := testleaf.Start(t, testleaf.Options{Store: store})
	upstream, err := relay.Open([]string{without.URL(), with.URL()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	edge := testleaf.Start(t, testleaf.Options{Store: upstream.Store()})
	d, _ := mask.ParseDomain("10^9")
	m, err := mask.New(drivertest.MaskKeys["k1"], d, "order")
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int64]bool)
	for _, servers := range [][]*testleaf.Server{{with}, {without, with}, {edge}} {
		c := connect(t, &client.Options{}, servers...)
		for n := range 5 {
			ranges, err := c.Take(t.Context(), "order", nil, n+1)
			one, failed := c.Next(t.Context(), "order")
			ordered, late := c.Ordered("", "order").Next(t.Context())
			issued, last := c.Issue(t.Context(), client.Request{Key: "order", Count: 2})
			if err := errors.Join(err, failed, late, last); err != nil {
				t.Fatal(err)
			}
			for _, r := range append(append(ranges, issued.Ranges...), leaf.Range{Start: one, End: one + 1}, leaf.Range{Start: ordered, End: ordered + 1}) {
				plain, err := m.Reveal(r.Start)
				if err != nil || r.Len() != 1 || plain < 1 || plain > 1000 || seen[plain] {
					t.Errorf("%v is the number %d, %v", r, plain, err)
				}
				seen[plain] = true
			}
		}
	}
	for tag, err := range store.Tags(t.Context()) {
		if err != nil || tag.MaxID != int64(len(seen)+1) {
			t.Errorf("the counter is at %d after %d numbers, %v", tag.MaxID, len(seen), err)
		}
	}
	if _, err := connect(t, &client.Options{}, without).Next(t.Context(), "order"); !errors.Is(err, segment.ErrMaskKey) {
		t.Errorf("from a server without the key: %v", err)
	}
}
