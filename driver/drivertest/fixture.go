package drivertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A fixture is the backend as one rule uses it.
type fixture struct {
	StoreBackend
	t     testing.TB
	fresh func(testing.TB) StoreBackend // makes another state
}

// order is the tag of the rules that need just one.
var order = segment.Tag{Name: "order", MaxID: 1, Step: 2000, Options: segment.Describe("order numbers")}

// open returns a further client.
func (b *fixture) open() segment.Store { return b.Open(b.t) }

// openWith returns a client of the state with tags added.
func (b *fixture) openWith(ctx context.Context, tags ...segment.Tag) (segment.Store, error) {
	s := b.open()
	for _, tag := range tags {
		if err := b.create(ctx, s, tag); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (b *fixture) create(ctx context.Context, s segment.Store, tag segment.Tag) error {
	if c, ok := s.(segment.Catalog); ok {
		return c.Create(ctx, tag)
	}
	b.Create(b.t, tag)
	return nil
}

// reopen closes s, if it can be closed, and returns another client.
func (b *fixture) reopen(s segment.Store) (segment.Store, error) {
	if c, ok := s.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("close: %w", err)
		}
	}
	return b.open(), nil
}

// advance makes the call and checks that its range is want or, of a store that
// deals in units, is possible.
func (b *fixture) advance(ctx context.Context, s segment.Store, tag string, n int64, want leaf.Range) error {
	got, err := s.Advance(ctx, tag, n)
	switch r := got.Range; {
	case err != nil:
		return fmt.Errorf("advance %q by %d: %w", tag, n, err)
	case r == want, b.Caps.Units && !r.Empty() && r.Start >= 0 && r.Len() <= want.Len():
		return nil
	default:
		return fmt.Errorf("advance %q by %d: got %v, want %v", tag, n, r, want)
	}
}

// standsAt checks that the counter of tag is maxID.
func (b *fixture) standsAt(ctx context.Context, s segment.Store, tag string, maxID int64) error {
	tags, err := list(ctx, s)
	if err != nil {
		return err
	}
	got, ok := tags[tag]
	if !ok {
		return fmt.Errorf("tag %q is gone", tag)
	}
	if got.MaxID != maxID && !b.Caps.Units {
		return fmt.Errorf("the counter of %q stands at %d, want %d", tag, got.MaxID, maxID)
	}
	return nil
}

// list returns all tags by name.
func list(ctx context.Context, s segment.Store) (map[string]segment.Tag, error) {
	tags := make(map[string]segment.Tag)
	for tag, err := range s.Tags(ctx) {
		if err != nil {
			return nil, fmt.Errorf("list tags: %w", err)
		}
		if _, ok := tags[tag.Name]; ok {
			return nil, fmt.Errorf("tag %q is listed twice", tag.Name)
		}
		tags[tag.Name] = tag
	}
	return tags, sameSteps(ctx, s, tags)
}

// sameSteps checks that a [segment.Lister] lists tags, too.
func sameSteps(ctx context.Context, s segment.Store, tags map[string]segment.Tag) error {
	l, ok := s.(segment.Lister)
	if !ok {
		return nil
	}
	n := 0
	for tag, err := range l.Steps(ctx) {
		if err != nil {
			return fmt.Errorf("list steps: %w", err)
		}
		if listed, ok := tags[tag.Name]; !ok || listed.Step != tag.Step || !maps.Equal(listed.Options.Others(), tag.Options.Others()) {
			return fmt.Errorf("tag %q has step %d and options %v among the steps, and is %+v (%t) among the tags", tag.Name, tag.Step, tag.Options, listed, ok)
		}
		n++
	}
	if n != len(tags) {
		return fmt.Errorf("%d steps of %d tags", n, len(tags))
	}
	return nil
}

// is checks that err wraps want.
func is(what string, err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return fmt.Errorf("%s: got error %v, want one that wraps %q", what, err, want)
}

// fails checks that err is an error.
func fails(what string, err error) error {
	if err != nil {
		return nil
	}
	return fmt.Errorf("%s: got no error", what)
}

// first returns the first error of several checks. All of them have run.
func first(errs ...error) error { return cmp.Or(errs...) }

// together makes n calls at once and returns the first error.
func together(n int, call func(i int) error) error {
	var wg sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		wg.Go(func() { errs[i] = call(i) })
	}
	wg.Wait()
	return first(errs...)
}

// soon is how quickly a call whose context has ended must be back.
const soon = 10 * time.Second

// promptly checks that call returns soon.
func promptly(what string, call func()) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(soon):
		return fmt.Errorf("%s: still not back after %v", what, soon)
	}
}

// recovers repeats call until it succeeds: a server may be busy for a while with the connections of
// cancelled calls.
func recovers(call func() error) (err error) {
	for deadline := time.Now().Add(3 * soon); ; {
		if err = call(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
