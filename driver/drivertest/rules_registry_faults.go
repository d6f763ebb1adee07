package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

func registryFaultRules() []registryRule {
	return []registryRule{
		{"faults/cancelled before", "a call whose context has ended returns its error, soon, and writes nothing, not even later",
			registryCancelledBefore},
		{"faults/cancelled during", "a call whose context ends under way returns soon, and whatever became of it, no term is won twice",
			registryCancelledDuring},
		{"faults/cancelled between", "a call that sees between two steps that its context has ended says so, or has done what it says",
			registryCancelledBetween},
		{"faults/reopen", "a client opened later finds every record", registryReopen},
		{"faults/use after Close", "a closed registry answers with errors", registryUseAfterClose},
	}
}

// registryCalls returns one call of each method of r, on worker 7, whose record is old.
func registryCalls(ctx context.Context, r worker.Registry, old worker.Record) map[string]func() error {
	return map[string]func() error{
		"Load":                 func() error { _, err := r.Load(ctx, 7); return err },
		"Swap":                 func() error { return attempt(ctx, r, old, claimed(7, 2)) },
		"Swap of a fresh cell": func() error { return attempt(ctx, r, never(8), claimed(8, 1)) },
		"List":                 func() error { _, err := r.List(ctx); return err },
		"Clock":                func() error { _, err := r.Clock(ctx); return err },
	}
}

func registryCancelledBefore(ctx context.Context, b *registryFixture) error {
	r, one := b.open(), claimed(7, 1)
	if err := swap(ctx, r, never(7), one); err != nil {
		return err
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	for name, call := range registryCalls(ended, r, one) {
		var err error
		if late := promptly(name, func() { err = call() }); late != nil {
			return late
		}
		if err := is(name+" with a cancelled context", err, context.Canceled); err != nil {
			return err
		}
	}
	two := claimed(7, 2)
	return first(listed(ctx, r, one), swap(ctx, r, one, two), listed(ctx, b.open(), two))
}

// wonTerms counts the wins of each term; term 0 is that of a swap that won nothing.
type wonTerms [400]atomic.Int64

// add returns an error where a term was won before, or err.
func (w *wonTerms) add(term int64, err error) error {
	if n := w[min(int(term), len(w)-1)].Add(1); err == nil && term > 0 && n > 1 {
		return fmt.Errorf("term %d was won %d times", term, n)
	}
	return err
}

func registryCancelledDuring(ctx context.Context, b *registryFixture) error {
	var wins wonTerms
	clients := b.clients(3)
	for looks := range looksOfACall {
		if err := wins.overtake(ctx, clients[0], clients[1], looks); err != nil {
			return err
		}
	}
	if err := together(8, func(i int) error {
		r := clients[i%len(clients)]
		for round := range 40 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(round*(i+1))*20*time.Microsecond)
			err := wins.add(swapWithin(ctx, limited, r))
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	// A late swap of a caller that has left may still arrive, but wins no term again.
	for range 5 {
		if err := wins.add(countUp(ctx, b.open())); err != nil {
			return err
		}
	}
	return nil
}

// overtake has another client count up within a swap, whose context ends then.
func (w *wonTerms) overtake(ctx context.Context, r, other worker.Registry, looks int64) error {
	ended, cancel := context.WithCancel(ctx)
	defer cancel()
	var others error
	m := meets(ended, looks, func() {
		defer cancel()
		others = w.add(countUp(ctx, other))
	})
	err := w.add(swapWithin(ctx, m, r))
	if m.wait() {
		err = first(err, others)
	}
	return err
}

// An ending is a context whose Err returns an error after some calls, and whose Done never closes.
// It imitates a context that ends between two checks of a call.
type ending struct {
	context.Context
	looks atomic.Int64 // calls of Err that still return nil
}

func (*ending) Done() <-chan struct{} { return nil }

func (c *ending) Err() error {
	if c.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func registryCancelledBetween(ctx context.Context, b *registryFixture) error {
	r, now := b.open(), claimed(7, 1)
	if err := swap(ctx, r, never(7), now); err != nil {
		return err
	}
	clock, err := r.Clock(ctx)
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	for looks := range looksOfACall {
		endsAfter := func() context.Context {
			c := &ending{Context: ctx}
			c.looks.Store(looks)
			return c
		}
		next := claimed(7, now.Term+1)
		swapped := swap(endsAfter(), r, now, next)
		after, err := r.Load(ctx, 7)
		switch {
		case err != nil:
			return err
		case swapped == nil && !after.Equal(next):
			return fmt.Errorf("a swap that did not fail left %+v, want %+v", after, next)
		}
		now = after
		record, loaded := r.Load(endsAfter(), 7)
		if loaded == nil && !record.Equal(now) {
			return fmt.Errorf("a load that did not fail returned %+v, want %+v", record, now)
		}
		later, told := r.Clock(endsAfter())
		if told == nil && later.IsZero() != clock.IsZero() {
			return fmt.Errorf("a look at the clock that did not fail returned %v, want a time as %v is one", later, clock)
		}
		for _, err := range []error{swapped, loaded, told, listed(endsAfter(), r, now)} {
			if err != nil && !errors.Is(err, context.Canceled) {
				return fmt.Errorf("a call whose context ended gave another reason: %w", err)
			}
		}
	}
	return nil
}

// swapWithin counts up worker 7, by a swap with the context limited, and returns the term that it is
// sure to have won, or 0.
func swapWithin(ctx, limited context.Context, r worker.Registry) (int64, error) {
	old, err := r.Load(ctx, 7)
	if err != nil {
		return 0, fmt.Errorf("load: %w", err)
	}
	if late := promptly("Swap", func() { err = attempt(limited, r, old, claimed(7, old.Term+1)) }); late != nil {
		return 0, late
	}
	if errors.Is(err, leaf.ErrInvalid) || errors.Is(err, worker.ErrNotCreated) {
		return 0, fmt.Errorf("a call cut short was reported as %w", err)
	}
	if err != nil {
		return 0, nil
	}
	return old.Term + 1, nil
}

func registryReopen(ctx context.Context, b *registryFixture) error {
	r := b.open()
	one, two := never(7), never(524287)
	for term := range int64(3) {
		next1, next2 := claimed(7, term+1), claimed(524287, term+1)
		err := first(swap(ctx, r, one, next1), swap(ctx, r, two, next2))
		if err != nil {
			return err
		}
		one, two = next1, next2
		if r, err = b.reopen(r); err != nil {
			return err
		}
		if err := first(holds(ctx, r, one), listed(ctx, r, one, two)); err != nil {
			return err
		}
	}
	return nil
}

func registryUseAfterClose(ctx context.Context, b *registryFixture) error {
	r, one := b.open(), claimed(7, 1)
	c, ok := r.(io.Closer)
	if !ok {
		return nil
	}
	if err := swap(ctx, r, never(7), one); err != nil {
		return err
	}
	return first(
		failAfterClose(c, registryCalls(ctx, r, one)),
		listed(ctx, b.open(), one))
}

func watchRules() []registryRule {
	return []registryRule{
		{"watch/foreign write", "a watch notices that another client writes, also to a cell that was never written, and can be set again",
			watchNotices},
		{"watch/cancelled before", "a watch whose context has ended is refused or ends soon", watchCancelled},
	}
}

func watchNotices(ctx context.Context, b *registryFixture) error {
	r, other := b.open(), b.open()
	w, ok := r.(worker.Watcher)
	if !ok {
		return nil
	}
	old := never(7)
	for term := range int64(4) {
		noticed, err := w.Watch(ctx, 7)
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		if noticed == nil {
			return nil
		}
		record := claimed(7, term+1)
		if err := swap(ctx, other, old, record); err != nil {
			return err
		}
		if err := promptly("the watch", func() { <-noticed }); err != nil {
			return err
		}
		if err := holds(ctx, r, record); err != nil {
			return err
		}
		old = record
	}
	return nil
}

func watchCancelled(ctx context.Context, b *registryFixture) error {
	w, ok := b.open().(worker.Watcher)
	if !ok {
		return nil
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	return promptly("a watch with a cancelled context", func() {
		if noticed, err := w.Watch(ended, 7); err == nil && noticed != nil {
			<-noticed
		}
	})
}
