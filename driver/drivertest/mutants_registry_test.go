package drivertest

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

type swapFunc func(ctx context.Context, old, new worker.Record) (worker.Record, error)

// onSwap makes registries whose Swap is what f makes of a fakeRegistry's.
func onSwap(f func(s *fakeRegistry) swapFunc) func(*fakeRegistry) worker.Registry {
	return func(s *fakeRegistry) worker.Registry { return &client{fakeRegistry: s, swap: f(s)} }
}

// comparing compares the content of a cell by matches.
func comparing(matches func(held, old worker.Record) bool) func(*fakeRegistry) worker.Registry {
	return onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			return s.swapIf(ctx, old, new, func(held worker.Record) bool { return matches(held, old) })
		}
	})
}

// without compares records but for a field.
func without(drop func(*worker.Record)) func(*fakeRegistry) worker.Registry {
	return comparing(func(held, old worker.Record) bool {
		held.Layouts, old.Layouts = slices.Clone(held.Layouts), slices.Clone(old.Layouts)
		drop(&held)
		drop(&old)
		return held.Equal(old)
	})
}

// keeping changes records on their way into the cells.
func keeping(change func(*worker.Record)) func(*fakeRegistry) worker.Registry {
	return onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			change(&new)
			return s.Swap(ctx, old, new)
		}
	})
}

// leasing makes registries that assign no worker IDs.
func leasing(open func(*fakeRegistry) worker.Registry) func(*fakeRegistry) worker.Registry {
	return func(s *fakeRegistry) worker.Registry { return struct{ worker.Registry }{open(s)} }
}

// onList makes registries whose listing is changed by edit.
func onList(edit func([]worker.Record) []worker.Record) func(*fakeRegistry) worker.Registry {
	return func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, list: func(ctx context.Context) ([]worker.Record, error) {
			all, err := s.List(ctx)
			if err != nil {
				return nil, err
			}
			return edit(all), nil
		}}
	}
}

// readThenSet swaps in two steps that others can come between.
func readThenSet(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		if now, err := s.swapIf(ctx, old, new, func(worker.Record) bool { return false }); !errors.Is(err, worker.ErrConflict) {
			return now, err
		}
		if !s.peek(new.Worker).Equal(old) {
			return worker.Record{}, worker.ErrConflict
		}
		time.Sleep(roundTrip)
		s.force(new)
		return new, nil
	}
}

// createInTwoSteps is correct except for unwritten cells.
func createInTwoSteps(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		if !old.IsZero() {
			return s.Swap(ctx, old, new)
		}
		return readThenSet(s)(ctx, old, new)
	}
}

// winning takes a swap for done once it has read what the swap expects.
func winning(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		read := s.peek(old.Worker)
		now, err := s.Swap(ctx, old, new)
		if err != nil && read.Equal(old) {
			return new, nil
		}
		return now, err
	}
}

// idempotent takes a swap for done where the cell holds its record already.
func idempotent(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		now, err := s.Swap(ctx, old, new)
		if errors.Is(err, worker.ErrConflict) && s.peek(new.Worker).Equal(new) {
			return new, nil
		}
		return now, err
	}
}

// changedRows takes a swap that changed nothing for a conflict.
func changedRows(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		if old.Equal(new) && s.peek(new.Worker).Equal(old) {
			return worker.Record{}, worker.ErrConflict
		}
		return s.Swap(ctx, old, new)
	}
}

// oneLock has writers in conflict whichever cells they write.
func oneLock(s *fakeRegistry) worker.Registry {
	return &client{fakeRegistry: s, swap: func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		s.mu.Lock()
		before := len(s.texts)
		s.mu.Unlock()
		time.Sleep(roundTrip)
		s.mu.Lock()
		after := len(s.texts)
		s.mu.Unlock()
		if before != after {
			return worker.Record{}, worker.ErrConflict
		}
		return s.Swap(ctx, old, new)
	}}
}

// late executes a call after its caller has left, without reading the cell.
func late(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		if now, err := s.Swap(ctx, old, new); err == nil || errors.Is(err, worker.ErrConflict) || ctx.Err() == nil {
			return now, err
		}
		s.force(new)
		return worker.Record{}, ctx.Err()
	}
}

// undoing takes back a swap whose context has ended meanwhile.
func undoing(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		now, err := s.Swap(ctx, old, new)
		if err != nil {
			return now, err
		}
		time.Sleep(roundTrip)
		if ctx.Err() != nil {
			s.force(old)
			return worker.Record{}, ctx.Err()
		}
		return new, nil
	}
}

// hanging waits for an answer that never comes when its context ends.
func hanging(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		now, err := s.Swap(ctx, old, new)
		if ctx.Err() != nil {
			time.Sleep(soon + time.Second)
		}
		return now, cmp.Or(err, ctx.Err())
	}
}

// caching remembers its reads.
func caching(s *fakeRegistry) worker.Registry {
	var mu sync.Mutex
	cache := make(map[int64]worker.Record)
	c := &client{fakeRegistry: s}
	c.load = func(ctx context.Context, id int64) (worker.Record, error) {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := cache[id]; ok {
			return r, nil
		}
		r, err := s.Load(ctx, id)
		if err == nil && !r.IsZero() {
			cache[id] = r
		}
		return r, err
	}
	c.swap = func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		mu.Lock()
		defer mu.Unlock()
		delete(cache, new.Worker)
		return s.Swap(ctx, old, new)
	}
	return c
}

// cachingList remembers its first listing for a while.
func cachingList(s *fakeRegistry) worker.Registry {
	var mu sync.Mutex
	var all []worker.Record
	var until time.Time
	return &client{fakeRegistry: s, list: func(ctx context.Context) (_ []worker.Record, err error) {
		mu.Lock()
		defer mu.Unlock()
		if time.Now().After(until) {
			all, err = s.List(ctx)
			until = time.Now().Add(time.Second)
		}
		return all, err
	}}
}

// writingBehind writes a record only with the next call of its client.
func writingBehind(s *fakeRegistry) worker.Registry {
	var mu sync.Mutex
	pending := make(map[int64]worker.Record)
	own := newFakeRegistry()
	flush := func() {
		for _, r := range pending {
			s.force(r)
		}
		clear(pending)
	}
	return &client{fakeRegistry: s, swap: func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		mu.Lock()
		defer mu.Unlock()
		flush()
		own.mu.Lock()
		s.mu.Lock()
		own.texts = maps.Clone(s.texts)
		s.mu.Unlock()
		own.mu.Unlock()
		now, err := own.Swap(ctx, old, new)
		if err == nil {
			pending[new.Worker] = new
		}
		return now, err
	}, load: func(ctx context.Context, id int64) (worker.Record, error) {
		mu.Lock()
		defer mu.Unlock()
		if r, ok := pending[id]; ok {
			return r, nil
		}
		return s.Load(ctx, id)
	}}
}

// dropping deletes cells without a holder.
func dropping(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		now, err := s.Swap(ctx, old, new)
		if err == nil && !new.Held() && new.Term == 1 && new.Horizon.After(time.UnixMilli(1)) {
			s.mu.Lock()
			delete(s.texts, new.Worker)
			s.mu.Unlock()
		}
		return now, err
	}
}

// overwriting takes an unreadable cell for an unwritten one.
func overwriting(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		s.mu.Lock()
		_, err := s.read(new.Worker)
		if err != nil {
			delete(s.texts, new.Worker)
		}
		s.mu.Unlock()
		return s.Swap(ctx, old, new)
	}
}

// lenient shows an unreadable cell as an unwritten one.
func lenient(s *fakeRegistry) worker.Registry {
	return &client{fakeRegistry: s, load: func(ctx context.Context, id int64) (worker.Record, error) {
		r, err := s.Load(ctx, id)
		if err != nil && ctx.Err() == nil && id >= 0 {
			return never(id), nil
		}
		return r, err
	}}
}

// skipping leaves unreadable cells out of its listing.
func skipping(s *fakeRegistry) worker.Registry {
	return &client{fakeRegistry: s, list: func(ctx context.Context) ([]worker.Record, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		var all []worker.Record
		for _, id := range slices.Sorted(maps.Keys(s.texts)) {
			if r, err := s.read(id); err == nil {
				all = append(all, r)
			}
		}
		return all, nil
	}}
}

// nameless leaves the worker out of its errors, opaque the wrapped error.
func nameless(s *fakeRegistry) worker.Registry {
	return &client{fakeRegistry: s, load: func(ctx context.Context, id int64) (worker.Record, error) {
		r, err := s.Load(ctx, id)
		if errors.Is(err, worker.ErrNewer) {
			err = worker.ErrNewer
		} else if err != nil && ctx.Err() == nil && id >= 0 {
			err = errOther
		}
		return r, err
	}}
}

func opaque(s *fakeRegistry) worker.Registry {
	return &client{fakeRegistry: s, load: func(ctx context.Context, id int64) (worker.Record, error) {
		r, err := s.Load(ctx, id)
		if errors.Is(err, worker.ErrNewer) {
			err = errors.New(err.Error())
		}
		return r, err
	}}
}

func clockOf(now func() time.Time) func(*fakeRegistry) worker.Registry {
	return func(s *fakeRegistry) worker.Registry {
		return &client{fakeRegistry: s, clock: func(ctx context.Context) (time.Time, error) { return now(), ctx.Err() }}
	}
}

// backwards is a clock that goes backwards.
func backwards() func() time.Time {
	var mu sync.Mutex
	now := time.Now()
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(-time.Second)
		return now
	}
}

// ignoring runs all calls without their context.
func ignoring(s *fakeRegistry) worker.Registry {
	return &client{fakeRegistry: s, swap: func(_ context.Context, old, new worker.Record) (worker.Record, error) {
		return s.Swap(context.Background(), old, new)
	}}
}

// forgetting drops a swap whose context ends under way, and says nothing of it.
func forgetting(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		if ctx.Err() == nil && ctx.Err() != nil {
			return new, nil
		}
		return s.Swap(ctx, old, new)
	}
}

// afterwards writes although the context had ended before.
func afterwards(s *fakeRegistry) swapFunc {
	return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
		now, err := s.Swap(context.WithoutCancel(ctx), old, new)
		return now, cmp.Or(ctx.Err(), err)
	}
}

// unchecked is a registry that lets records through that check says nothing of.
func unchecked(allowed func(old, new worker.Record) bool) func(*fakeRegistry) worker.Registry {
	return onSwap(func(s *fakeRegistry) swapFunc {
		return func(ctx context.Context, old, new worker.Record) (worker.Record, error) {
			if now, err := s.Swap(ctx, old, new); !errors.Is(err, leaf.ErrInvalid) || !allowed(old, new) {
				return now, err
			}
			s.force(new)
			return new, nil
		}
	})
}

// forked is a client whose state is its own.
func forked(s *fakeRegistry) worker.Registry { return &client{fakeRegistry: newFakeRegistry()} }

func capital(r *worker.Record) { r.Owner = strings.ToUpper(r.Owner) }
