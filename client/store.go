package client

import (
	"context"
	"iter"
	"sync"

	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/segment"
)

// A store remembers the granted tags: a token for IDs need not allow listing tags, and thousands of
// programs should not list them. The program notices a deleted tag at the next refill of its stock.
type store struct {
	leafconn.Store

	mu    sync.Mutex
	steps map[string]int64
}

func (s *store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.remember(tag)(s.Store.Advance(ctx, tag, n))
}

func (s *store) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	return s.remember(tag)(s.Store.AdvanceStrict(ctx, tag, period, n))
}

func (s *store) AdvanceMasked(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.remember(tag)(s.Store.AdvanceMasked(ctx, tag, n))
}

// remember returns a function that passes a grant on.
func (s *store) remember(tag string) func(segment.Grant, error) (segment.Grant, error) {
	return func(g segment.Grant, err error) (segment.Grant, error) {
		if err != nil {
			return g, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.steps == nil {
			s.steps = make(map[string]int64)
		}
		s.steps[tag] = g.Step
		return g, nil
	}
}

func (s *store) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for name, step := range s.steps {
			if !yield(segment.Tag{Name: name, Step: step}, nil) {
				return
			}
		}
	}
}
