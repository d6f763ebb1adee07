package issuer_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
)

// A runner is a counter with runs of up to 10 IDs.
type runner struct{ counter }

func (r *runner) TakeContiguous(_ context.Context, _ string, n int) (leaf.Range, error) {
	if n > 10 {
		return leaf.Range{}, leaf.ErrNotContiguous
	}
	r.calls++
	return leaf.Range{Start: 200, End: 200 + int64(n)}, nil
}

func TestRanges(t *testing.T) {
	source, plain := new(runner), new(counter)
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(source), issuer.Ticket: issuer.Numbers(plain)},
		&issuer.Options{MaxBatch: 5, MaxRange: 50})
	tests := []struct {
		scheme, key      string
		n                int
		take, contiguous error
	}{
		{"", "order", 1, nil, nil},
		{"segment", "order", 10, nil, nil},
		{"segment", "order", 11, nil, leaf.ErrNotContiguous},
		{"segment", "order", 50, nil, leaf.ErrNotContiguous},
		{"segment", "order", 51, leaf.ErrInvalid, leaf.ErrInvalid},
		{"segment", "order", 0, leaf.ErrInvalid, leaf.ErrInvalid},
		{"segment", "", 1, issuer.ErrBadKey, issuer.ErrBadKey},
		{"ticket", "order", 1, nil, leaf.ErrNotContiguous},
		{"uuid", "", 1, leaf.ErrInvalid, leaf.ErrInvalid},
		{"snowflake", "", 1, issuer.ErrSchemeOff, issuer.ErrSchemeOff},
	}
	for _, tt := range tests {
		before := source.calls + plain.calls
		ranges, err := ids.AppendRanges(t.Context(), tt.scheme, tt.key, nil, tt.n)
		if !errors.Is(err, tt.take) || err == nil && ranges[0].Len() != int64(tt.n) {
			t.Errorf("%s %q %d: %v, %v; want %v", tt.scheme, tt.key, tt.n, ranges, err, tt.take)
		}
		run, err := ids.TakeContiguous(t.Context(), tt.scheme, tt.key, tt.n)
		if !errors.Is(err, tt.contiguous) || err == nil && run.Len() != int64(tt.n) {
			t.Errorf("%s %q %d contiguous: %v, %v; want %v", tt.scheme, tt.key, tt.n, run, err, tt.contiguous)
		}
		if calls := source.calls + plain.calls - before; tt.take != nil && calls != 0 {
			t.Errorf("%s %q %d: refused, and the source was asked", tt.scheme, tt.key, tt.n)
		}
	}
}
