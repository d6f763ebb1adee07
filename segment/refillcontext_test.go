package segment_test

import (
	"context"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

type callerKey struct{}

// A contextStore sends the caller that the context of each Advance carries.
type contextStore struct {
	segment.Store
	callers chan any
}

func (s *contextStore) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	s.callers <- ctx.Value(callerKey{})
	return s.Store.Advance(ctx, tag, n)
}

func TestRefillContext(t *testing.T) {
	keep := func(caller context.Context) context.Context {
		return context.WithValue(context.Background(), callerKey{}, caller.Value(callerKey{}))
	}
	for name, tt := range map[string]struct {
		keep func(context.Context) context.Context
		want any
	}{"kept": {keep, "a request"}, "not kept": {nil, nil}} {
		t.Run(name, func(t *testing.T) {
			store := &contextStore{newStore(t, 1, 10), make(chan any, 100)}
			b := segment.NewBuffer(store, "order", &segment.Options{RefillContext: tt.keep})
			if _, err := b.Next(context.WithValue(t.Context(), callerKey{}, "a request")); err != nil {
				t.Fatal(err)
			}
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
			if got := <-store.callers; got != tt.want {
				t.Errorf("the call was made for %v, want %v", got, tt.want)
			}
		})
	}
}
