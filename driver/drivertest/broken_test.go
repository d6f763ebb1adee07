package drivertest

import (
	"context"
	"iter"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
)

// advanceFunc, returnFunc, … are the methods that broken replaces.
type (
	advanceFunc func(ctx context.Context, tag string, n int64) (segment.Grant, error)
	returnFunc  func(ctx context.Context, tag string, last segment.Grant, start int64) error
	tagsFunc    func(ctx context.Context) iter.Seq2[segment.Tag, error]
	createFunc  func(ctx context.Context, tag segment.Tag) error
	alterFunc   func(ctx context.Context, name string, change segment.Change) (segment.Tag, error)
	deleteFunc  func(ctx context.Context, name string) error
)

// broken is a client of a good store with some methods replaced.
type broken struct {
	*kv.Store
	advance  advanceFunc
	giveBack returnFunc
	tags     tagsFunc
	create   createFunc
	alter    alterFunc
	remove   deleteFunc
}

func (b *broken) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if b.advance != nil {
		return b.advance(ctx, tag, n)
	}
	return b.Store.Advance(ctx, tag, n)
}

func (b *broken) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	if b.giveBack != nil {
		return b.giveBack(ctx, tag, last, start)
	}
	return b.Store.Return(ctx, tag, last, start)
}

func (b *broken) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	if b.tags != nil {
		return b.tags(ctx)
	}
	return b.Store.Tags(ctx)
}

func (b *broken) Create(ctx context.Context, tag segment.Tag) error {
	if b.create != nil {
		return b.create(ctx, tag)
	}
	return b.Store.Create(ctx, tag)
}

func (b *broken) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	if b.alter != nil {
		return b.alter(ctx, name, change)
	}
	return b.Store.Alter(ctx, name, change)
}

func (b *broken) Delete(ctx context.Context, name string) error {
	if b.remove != nil {
		return b.remove(ctx, name)
	}
	return b.Store.Delete(ctx, name)
}

// closable is a store whose Close does nothing at all.
type closable struct{ *kv.Store }

func (closable) Close() error { return nil }

// The following make the parts of broken stores.

func onAdvance(f func(s *kv.Store) advanceFunc) func(*kv.Store) segment.Store {
	return func(s *kv.Store) segment.Store { return &broken{Store: s, advance: f(s)} }
}

func onReturn(f func(s *kv.Store) returnFunc) func(*kv.Store) segment.Store {
	return func(s *kv.Store) segment.Store { return &broken{Store: s, giveBack: f(s)} }
}

func onTags(f func(s *kv.Store) tagsFunc) func(*kv.Store) segment.Store {
	return func(s *kv.Store) segment.Store { return &broken{Store: s, tags: f(s)} }
}

func onCreate(f func(s *kv.Store) createFunc) func(*kv.Store) segment.Store {
	return func(s *kv.Store) segment.Store { return &broken{Store: s, create: f(s)} }
}

func onAlter(f func(s *kv.Store) alterFunc) func(*kv.Store) segment.Store {
	return func(s *kv.Store) segment.Store { return &broken{Store: s, alter: f(s)} }
}

// folding compares names as fold makes them, in every method.
func folding(fold func(string) string) func(*kv.Store) segment.Store {
	return func(s *kv.Store) segment.Store {
		// real is the stored name that a collation would find.
		real := func(name string) string {
			for tag := range s.Tags(context.Background()) {
				if fold(tag.Name) == fold(name) {
					return tag.Name
				}
			}
			return name
		}
		return &broken{
			Store: s,
			advance: func(ctx context.Context, tag string, n int64) (segment.Grant, error) {
				return s.Advance(ctx, real(tag), n)
			},
			giveBack: func(ctx context.Context, tag string, last segment.Grant, start int64) error {
				return s.Return(ctx, real(tag), last, start)
			},
			alter: func(ctx context.Context, tag string, c segment.Change) (segment.Tag, error) {
				return s.Alter(ctx, real(tag), c)
			},
			remove: func(ctx context.Context, tag string) error { return s.Delete(ctx, real(tag)) },
		}
	}
}
