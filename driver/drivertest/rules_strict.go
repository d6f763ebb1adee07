package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// strictTag accepts a store that can lose writes, so that all stores have it.
var strictTag = segment.Tag{Name: "order", MaxID: 5, Step: 10, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrictLossy}}

// strictOrder follows a tag with strict order through its life.
func strictOrder(ctx context.Context, b *fixture, c catalog) error {
	s, ok := c.(segment.StrictStore)
	if !ok {
		return is("create with strict order", c.Create(ctx, strictTag), leaf.ErrUnsupported)
	}
	plain := segment.Tag{Name: "plain", MaxID: 1, Step: 10}
	if err := first(c.Create(ctx, strictTag), c.Create(ctx, plain), b.lists(ctx, b.open(), strictTag, plain)); err != nil {
		return err
	}
	refused := func() error {
		for _, n := range []int64{0, 1, 100} {
			_, err := b.open().Advance(ctx, "order", n)
			if err := is(fmt.Sprintf("advance a strict tag by %d", n), err, segment.ErrStrict); err != nil {
				return err
			}
		}
		return nil
	}
	exact := func(n, start int64) error {
		g, err := s.AdvanceStrict(ctx, "order", "", n)
		if want := (leaf.Range{Start: start, End: start + n}); err != nil || g.Step < 1 ||
			g.Range != want && !(b.Caps.Units && g.Range.Len() == n && g.Range.Start > start) {
			return fmt.Errorf("advance a strict tag by %d: got %+v, %v, want %v", n, g, err, want)
		}
		return nil
	}
	_, unknown := s.AdvanceStrict(ctx, "nope", "", 1)
	_, noOrder := s.AdvanceStrict(ctx, "plain", "", 1)
	_, invalid := s.AdvanceStrict(ctx, "order", "", 0)
	_, fixed := c.Alter(ctx, "order", segment.Change{Options: segment.TagOptions{segment.OptionOrder: ""}})
	if err := first(refused(), exact(1, 5), exact(3, 6), refused(),
		is("advance an unknown tag", unknown, leaf.ErrUnknownTag), is("advance a tag without order", noOrder, leaf.ErrUnknownTag),
		is("advance by 0", invalid, leaf.ErrInvalid), is("change the order", fixed, leaf.ErrInvalid)); err != nil {
		return err
	}
	now := strictTag
	now.MaxID, now.Step = 1000, 20
	got, err := c.Alter(ctx, "order", segment.Change{MaxID: &now.MaxID, Step: &now.Step})
	_, lower := c.Alter(ctx, "order", segment.Change{MaxID: new(int64(999))})
	if err := first(err, b.same(got, now), is("lower a strict tag", lower, leaf.ErrRegression), exact(1, 1000), refused()); err != nil {
		return err
	}
	now.MaxID = 1001
	if err := first(b.lists(ctx, b.open(), now, plain), c.Delete(ctx, "order")); err != nil {
		return err
	}
	_, gone := s.AdvanceStrict(ctx, "order", "", 1)
	fresh := segment.Tag{Name: "order", MaxID: 1, Step: 10}
	if err := first(is("advance a deleted tag", gone, leaf.ErrUnknownTag), c.Create(ctx, fresh),
		b.advance(ctx, b.open(), "order", 2, leaf.Range{Start: 1001, End: 1003}), c.Delete(ctx, "order"), c.Create(ctx, strictTag),
		exact(1, 1003)); err != nil {
		return err
	}
	return first(strictTogether(ctx, b), sameServer(ctx, b))
}

// sameServer has calls of both kinds name the same server: after a fail-over that lost writes, the
// name alone may tell.
func sameServer(ctx context.Context, b *fixture) error {
	s := b.open()
	some, err1 := s.Advance(ctx, "plain", 1)
	strict, err2 := s.(segment.StrictStore).AdvanceStrict(ctx, "order", "", 1)
	if err := errors.Join(err1, err2); err != nil || some.Server != strict.Server {
		return fmt.Errorf("a usual grant is of the server %q, a strict one of %q, %v", some.Server, strict.Server, err)
	}
	return nil
}

// strictTogether has callers of two clients at the same time: a call that begins after another one
// has ended gets larger IDs.
func strictTogether(ctx context.Context, b *fixture) error {
	type granted struct{ began, ended, start, end int64 }
	var clock atomic.Int64
	var mu sync.Mutex
	var all []granted
	var errs []error
	var wg sync.WaitGroup
	for _, s := range []segment.Store{b.open(), b.open()} {
		for caller := range 4 {
			wg.Go(func() {
				for range 6 {
					began := clock.Add(1)
					g, err := s.(segment.StrictStore).AdvanceStrict(ctx, "order", "", int64(caller+1))
					ended := clock.Add(1)
					mu.Lock()
					all, errs = append(all, granted{began, ended, g.Range.Start, g.Range.End}), append(errs, err)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	for _, early := range all {
		for _, late := range all {
			if early.ended < late.began && early.end > late.start {
				errs = append(errs, fmt.Errorf("a later call got %d after one with %d", late.start, early.end-1))
			}
		}
	}
	return errors.Join(errs...)
}
