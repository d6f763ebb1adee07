package segment_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// stocklessSet returns a set over a store with a tag of each kind.
func stocklessSet(t *testing.T, opts segment.Options) (*segment.Set, *drivertest.Faulty) {
	t.Helper()
	inner := memory.New().Store()
	for name, o := range map[string]segment.TagOptions{
		"plain": nil, "strict": {segment.OptionOrder: segment.OrderStrict}, "periodic": {segment.OptionPeriod: "day"}, "masked": masked.Options,
	} {
		if err := inner.Create(t.Context(), segment.Tag{Name: name, MaxID: 1, Step: 10, Options: o}); err != nil {
			t.Fatal(err)
		}
	}
	opts.MaskKeys = drivertest.MaskKeys
	store := &drivertest.Faulty{Store: inner}
	set := segment.NewSet(store, &segment.SetOptions{Options: opts, CheckInterval: 24 * time.Hour})
	t.Cleanup(func() { _ = set.Close(context.WithoutCancel(t.Context())) })
	return set, store
}

// Each kind of tag takes the calls that fit it, and refuses the others with its reason.
func TestKindsOfTags(t *testing.T) {
	set, store := stocklessSet(t, segment.Options{})
	s, ctx := set.Server(), t.Context()
	none, today, bad := "", time.Now().UTC().Format(time.DateOnly), "2026-02-30"
	strictCall := func(period *string, masked bool) func(string) error {
		return func(tag string) error { _, err := s.AdvanceStrict(ctx, tag, period, masked, 2); return err }
	}
	for name, c := range map[string]struct {
		call                            func(tag string) error
		plain, strict, periodic, masked error
	}{
		"Next":             {func(tag string) error { _, err := set.Next(ctx, tag); return err }, nil, nil, nil, nil},
		"Advance":          {func(tag string) error { _, err := s.Advance(ctx, tag, 1, ""); return err }, nil, segment.ErrStrict, segment.ErrPeriodic, segment.ErrMasked},
		"a run of one":     {func(tag string) error { _, err := set.TakeContiguous(ctx, tag, 1); return err }, nil, nil, nil, nil},
		"a run":            {func(tag string) error { _, err := set.TakeContiguous(ctx, tag, 2); return err }, nil, nil, nil, leaf.ErrNotContiguous},
		"as of old":        {strictCall(nil, false), leaf.ErrUnknownTag, nil, segment.ErrPeriodic, segment.ErrMasked},
		"with a period":    {strictCall(&today, false), leaf.ErrUnknownTag, leaf.ErrInvalid, nil, segment.ErrMasked},
		"the present one":  {strictCall(&none, false), leaf.ErrUnknownTag, nil, nil, segment.ErrMasked},
		"with masks":       {strictCall(&none, true), leaf.ErrUnknownTag, nil, nil, nil},
		"masks, a period":  {strictCall(&today, true), leaf.ErrUnknownTag, leaf.ErrInvalid, nil, leaf.ErrInvalid},
		"a bad period":     {strictCall(&bad, true), leaf.ErrUnknownTag, leaf.ErrInvalid, leaf.ErrInvalid, leaf.ErrInvalid},
		"10,000 at once":   {func(tag string) error { _, err := set.Take(ctx, tag, nil, 10_000); return err }, nil, nil, nil, nil},
		"more than 10,000": {func(tag string) error { _, err := set.Take(ctx, tag, nil, 10_001); return err }, nil, nil, nil, leaf.ErrInvalid},
	} {
		for tag, want := range map[string]error{"plain": c.plain, "strict": c.strict, "periodic": c.periodic, "masked": c.masked, "none": leaf.ErrUnknownTag, "": leaf.ErrInvalid} {
			if err := c.call(tag); !errors.Is(err, want) {
				t.Errorf("%s of %q: %v, want %v", name, tag, err, want)
			}
		}
	}
	for tag, want := range map[string]bool{"plain": false, "strict": true, "periodic": true, "masked": true} {
		granted := len(store.Granted(tag))
		if got, err := s.Stockless(ctx, tag); got != want || err != nil {
			t.Errorf("%s has no stock: %v, %v", tag, got, err)
		}
		if want && len(store.Granted(tag)) != granted { // a plain tag's stock may grow at any time
			t.Errorf("the question of %s took IDs", tag)
		}
	}
	if got, err := s.Stockless(ctx, "none"); got || !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("an unknown tag: %v, %v", got, err)
	}
	fresh, _ := stocklessSet(t, segment.Options{})
	if got, err := fresh.Server().Stockless(ctx, "strict"); !got || err != nil {
		t.Errorf("before the first use: %v, %v", got, err)
	}
}

// The figures of a tag without a stock count its IDs, grants and failures.
func TestStatsOfAStrictTag(t *testing.T) {
	set, store := stocklessSet(t, segment.Options{})
	for _, n := range []int{3, 4} {
		if _, err := set.Take(t.Context(), "strict", nil, n); err != nil {
			t.Fatal(err)
		}
	}
	store.Set(drivertest.Fault{Before: errDown})
	_, err := set.Next(t.Context(), "strict")
	wantError(t, err, leaf.ErrExhausted)
	wantError(t, err, errDown)
	if st, _ := set.Server().Of("strict"); st.Issued != 7 || st.Step != 10 || st.Failures != 1 || st.Stock != 0 || st.Refills != 3 || st.Err != nil {
		t.Errorf("got %+v", st)
	}
	store.Set(drivertest.Fault{Before: fmt.Errorf("%w: too new", leaf.ErrUnsupported)})
	_, err = set.Next(t.Context(), "strict")
	if !errors.Is(err, leaf.ErrUnsupported) || errors.Is(err, leaf.ErrExhausted) {
		t.Errorf("an unfit store: %v", err)
	}
	if st, _ := set.Server().Of("strict"); st.Failures != 2 {
		t.Errorf("%d failures", st.Failures)
	}
}

// A deleted strict tag fails with the same words each time.
func TestDeletedStrictTagFailsAlike(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set, store := stocklessSet(t, segment.Options{})
		if _, err := set.Next(t.Context(), "strict"); err != nil {
			t.Fatal(err)
		}
		if err := store.Delete(t.Context(), "strict"); err != nil {
			t.Fatal(err)
		}
		_, first := set.Next(t.Context(), "strict")
		_, second := set.Next(t.Context(), "strict")
		wantError(t, first, leaf.ErrUnknownTag)
		b := segment.NewBuffer(&goneStore{}, "order", nil)
		_, err := b.Next(t.Context())
		wantError(t, err, leaf.ErrUnknownTag)
		time.Sleep(time.Minute) // it has no set to leave
		if first.Error() != second.Error() {
			t.Errorf("%q, then %q", first, second)
		}
	})
}

// A goneStore had a strict tag.
type goneStore struct{ strictStore }

func (*goneStore) AdvanceStrict(context.Context, string, string, int64) (segment.Grant, error) {
	return segment.Grant{}, leaf.ErrUnknownTag
}

// Callers who wait at the same time share a call as far as they name one period and the call is not too
// large; the others get the next one.
func TestStrictCallsInOneQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &recorder{strictStore: strictStore{next: 1, held: make(chan error)}}
		set := segment.NewSet(s, nil)
		defer set.Close(t.Context())
		var wg sync.WaitGroup
		ask := func(period string, n int64) {
			wg.Go(func() {
				if g, err := set.Server().AdvanceStrict(t.Context(), "order", &period, false, n); err != nil || g.Range.Len() != n || g.Store != "S" || g.Step != 1 {
					t.Errorf("%d of %q: %+v, %v", n, period, g, err)
				}
			})
			synctest.Wait()
		}
		ask("a", 1)
		for _, c := range []struct {
			period string
			n      int64
		}{{"a", 4000}, {"b", 2}, {"a", 6000}, {"a", 1}, {"b", 3}, {"b", 20_000}} {
			ask(c.period, c.n)
		}
		for range 5 {
			s.held <- nil
		}
		wg.Wait()
		if want := []string{"a 1", "a 10000", "b 5", "a 1", "b 20000"}; !slices.Equal(s.calls, want) {
			t.Errorf("the store was asked for %v, want %v", s.calls, want)
		}
	})
}

// A recorder knows the periods of its calls.
type recorder struct {
	strictStore
	calls []string
}

func (s *recorder) Advance(context.Context, string, int64) (segment.Grant, error) {
	return segment.Grant{}, segment.ErrPeriodic
}

func (s *recorder) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) { yield(segment.Tag{Name: "order", Step: 1}, nil) }
}

func (s *recorder) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	s.mu.Lock()
	s.calls = append(s.calls, fmt.Sprint(period, " ", n))
	s.mu.Unlock()
	g, err := s.strictStore.AdvanceStrict(ctx, tag, period, n)
	g.Period, g.Store = period, "S"
	return g, err
}

// A call to the store continues the trace of the first caller.
func TestStrictCallsHaveTheCallersContext(t *testing.T) {
	type key struct{}
	s := &contexts{strictStore: strictStore{next: 1}}
	b := segment.NewBuffer(s, "order", &segment.Options{RefillContext: func(caller context.Context) context.Context {
		return context.WithValue(context.Background(), key{}, caller.Value(key{}))
	}})
	for _, want := range []string{"one", "two"} {
		if _, err := b.Next(context.WithValue(t.Context(), key{}, want)); err != nil {
			t.Fatal(err)
		}
		if got := s.last.Value(key{}); got != want {
			t.Errorf("the store got the context of %v, want %s", got, want)
		}
	}
}

// A contexts store keeps the context of its latest call.
type contexts struct {
	strictStore
	last context.Context
}

func (s *contexts) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	s.last = ctx
	return s.strictStore.AdvanceStrict(ctx, tag, period, n)
}

// A store that grants another number than asked for is not believed.
func TestStrictGrantOfAnotherSize(t *testing.T) {
	for _, more := range []int64{-1, 1} {
		s := &inexact{strictStore: strictStore{next: 1}, more: more}
		b := segment.NewBuffer(s, "order", nil)
		_, err := b.Take(t.Context(), nil, 5)
		if !errors.Is(err, leaf.ErrExhausted) {
			t.Errorf("%d more: %v", more, err)
		}
		if told, ok := errors.AsType[*leaf.StoreError](err); !ok {
			t.Errorf("%d more: %v", more, told)
		}
	}
}

type inexact struct {
	strictStore
	more int64
}

func (s *inexact) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	return s.strictStore.AdvanceStrict(ctx, tag, period, n+s.more)
}

// A vanished caller of a tag without a stock costs no numbers.
func TestStrictCallerWhoHasGone(t *testing.T) {
	set, store := stocklessSet(t, segment.Options{})
	if _, err := set.Next(t.Context(), "strict"); err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	before := store.Calls(drivertest.OpAdvance)
	_, err := set.Take(ended, "strict", nil, 3)
	if !errors.Is(err, context.Canceled) || !errors.Is(err, segment.ErrStrict) || store.Calls(drivertest.OpAdvance) != before {
		t.Errorf("%v after %d calls", err, store.Calls(drivertest.OpAdvance)-before)
	}
}

// The memory of a tag with periods has the latest ones, at most 64, and the guard still notices a
// counter that went back.
func TestMemoryOfManyPeriods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory := notes{}
		set, _ := stocklessSet(t, segment.Options{Memory: memory})
		for day := range 70 {
			if id, err := set.Next(t.Context(), "periodic"); err != nil || id != 1 {
				t.Fatalf("day %d: got %d, %v", day, id, err)
			}
			marks := memory.Recall("periodic")
			if today := time.Now().UTC().Format(time.DateOnly); len(marks) > 64 || marks[today].High != 2 || day < 64 && len(marks) != day+1 {
				t.Fatalf("day %d: %d periods are remembered, of today %+v", day, len(marks), marks[today])
			}
			if day == 64 && len(marks) != 32 {
				t.Errorf("%d periods stay", len(marks))
			}
			time.Sleep(24 * time.Hour)
		}
		if oldest := time.Now().UTC().AddDate(0, 0, -37).Format(time.DateOnly); memory.Recall("periodic")[oldest].High != 2 {
			t.Errorf("%s is forgotten", oldest)
		}
		if n := set.Server().Known("periodic"); n != 0 {
			t.Errorf("periods have counters of their own, and the tag is at %d", n)
		}
	})
}
