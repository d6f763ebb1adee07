package issuer_test

import (
	"context"
	"iter"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/segment"
)

// A pair is a store of two counters with single tickets and one tag. Before each change others draw
// the set number of tickets from the first one.
type pair struct {
	segment.Catalog
	counters [2]int64
	others   []int64
}

func (p *pair) state() segment.Tag {
	return segment.Tag{Name: "order", Step: 1, MaxID: max(p.counters[0], p.counters[1])}
}

func (p *pair) Advance(context.Context, string, int64) (segment.Grant, error) {
	low := &p.counters[1]
	*low++
	return segment.Grant{Range: leaf.Range{Start: *low - 1, End: *low}, Step: 1, Source: "2"}, nil
}

func (p *pair) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) { yield(p.state(), nil) }
}

func (p *pair) Alter(_ context.Context, _ string, change segment.Change) (segment.Tag, error) {
	if change.MaxID != nil && len(p.others) > 0 {
		p.counters[0] += p.others[0]
		p.others = p.others[1:]
	}
	to, err := change.Apply(p.state())
	if err == nil && change.MaxID != nil {
		p.counters = [2]int64{to.MaxID, to.MaxID}
	}
	return p.state(), err
}

func (p *pair) Lift(context.Context, string, string, int64) error { return nil }

// An observed ID below the highest counter cannot come from the other counters any more.
func TestObserveTickets(t *testing.T) {
	tests := []struct {
		name    string
		others  []int64
		largest int64
	}{
		{"between the counters", nil, 500},
		{"between the counters, while others draw", []int64{1, 2, 4}, 500},
		{"above both", nil, 5000},
		{"above both, while others draw", []int64{10_000, 1}, 5000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &pair{counters: [2]int64{1000, 10}, others: tt.others}
			o, err := issuer.NewTags(p, nil, nil).Observe(t.Context(), "order", tt.largest)
			if err != nil || o.Tag.MaxID <= tt.largest || o.OthersBelow == 0 {
				t.Errorf("%+v, %v", o, err)
			}
			if least := min(p.counters[0], p.counters[1]); least <= tt.largest {
				t.Errorf("a counter stands at %d, and %d was observed", least, tt.largest)
			}
		})
	}
}
