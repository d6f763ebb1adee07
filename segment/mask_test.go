package segment_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/mask"
	"github.com/leaf-id/leaf/segment"
)

var masked = segment.Tag{Name: "order", MaxID: 1, Step: 10, Options: segment.TagOptions{
	segment.OptionMask: "k1:10^6:" + drivertest.MaskKeys["k1"].Fingerprint(),
}}

// maskedSet returns a set over a store with the tag masked, whose counter is at maxID.
func maskedSet(t *testing.T, keys segment.MaskKeys, maxID int64) (*segment.Set, segment.Store) {
	t.Helper()
	store := memory.New().Store()
	tag := masked
	tag.MaxID = maxID
	if err := store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{MaskKeys: keys}})
	t.Cleanup(func() {
		if err := set.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	return set, store
}

// counter returns the counter of the only tag.
func counter(t *testing.T, store segment.Store) int64 {
	t.Helper()
	for tag, err := range store.Tags(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		return tag.MaxID
	}
	return 0
}

// Whatever takes the numbers of a tag with a mask gets the hidden ones, one for each step of the
// counter.
func TestMaskedNumbers(t *testing.T) {
	set, store := maskedSet(t, drivertest.MaskKeys, 1)
	var got []int64
	take := func(ranges []leaf.Range, err error) {
		t.Helper()
		for _, r := range ranges {
			if r.Len() != 1 {
				t.Errorf("got %v", r)
			}
			got = append(got, r.Start)
		}
		if err != nil {
			t.Error(err)
		}
	}
	next := func(n int64, err error) { t.Helper(); take([]leaf.Range{{Start: n, End: n + 1}}, err) }
	next(set.Next(t.Context(), "order"))
	next(set.Next(t.Context(), "order"))
	take(set.Take(t.Context(), "order", nil, 3))
	c := set.Cursor("order", 5)
	next(c.Next(t.Context()))
	next(c.Next(t.Context()))
	r, err := set.TakeContiguous(t.Context(), "order", 1)
	take([]leaf.Range{r}, err)
	_, err = set.TakeContiguous(t.Context(), "order", 2)
	wantError(t, err, leaf.ErrNotContiguous)
	g, err := set.Server().AdvanceStrict(t.Context(), "order", nil, true, 2)
	take(g.AppendTo(nil), err)
	if !g.Range.Empty() {
		t.Errorf("the grant has the plain range %v", g.Range)
	}
	d, _ := mask.ParseDomain("10^6")
	m, err := mask.New(drivertest.MaskKeys["k1"], d, "order")
	if err != nil {
		t.Fatal(err)
	}
	for i, hidden := range got {
		if n, err := m.Reveal(hidden); err != nil || n != int64(i+1) {
			t.Errorf("%d is the number %d, %v, want %d", hidden, n, err, i+1)
		}
	}
	if n := counter(t, store); n != int64(len(got)+1) {
		t.Errorf("the counter is at %d after %d numbers", n, len(got))
	}
}

// A stock, a call without knowledge of masks, and more numbers than a call may have are refused.
func TestMaskedRefusals(t *testing.T) {
	set, store := maskedSet(t, drivertest.MaskKeys, 1)
	_, err := set.Server().Advance(t.Context(), "order", 5, "")
	wantError(t, err, segment.ErrMasked)
	_, err = set.Server().AdvanceStrict(t.Context(), "order", new(string), false, 1)
	wantError(t, err, segment.ErrMasked)
	_, err = set.Take(t.Context(), "order", nil, 10_001)
	wantError(t, err, leaf.ErrInvalid)
	if n := counter(t, store); n != 1 {
		t.Errorf("the counter is at %d", n)
	}
}

// A counter beyond the domain would leave no number.
func TestMaskCounter(t *testing.T) {
	tag := masked
	for end, good := range map[int64]bool{1: true, 999_999: true, 1_000_000: false, math.MaxInt64: false} {
		tag.MaxID = end
		if err := tag.Check(); good != (err == nil) || !good && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("a counter at %d: %v", end, err)
		}
	}
}

// Without the key, or with another one of its name, no number is spent.
func TestMaskKeyMissing(t *testing.T) {
	for _, keys := range []segment.MaskKeys{nil, {"k2": drivertest.MaskKeys["k1"]}, {"k1": mask.Key{2}}} {
		set, store := maskedSet(t, keys, 1)
		_, err := set.Next(t.Context(), "order")
		wantError(t, err, segment.ErrMaskKey)
		_, err = set.Server().AdvanceStrict(t.Context(), "order", nil, true, 2)
		wantError(t, err, segment.ErrMaskKey)
		if n := counter(t, store); n != 1 {
			t.Errorf("%v: the counter is at %d", keys, n)
		}
	}
}

// Beyond the domain nothing begins again, and the error does not tell the counter.
func TestMaskedOverflow(t *testing.T) {
	set, _ := maskedSet(t, drivertest.MaskKeys, 999_998)
	if ranges, err := set.Take(t.Context(), "order", nil, 2); err != nil || len(ranges) != 2 {
		t.Errorf("the last two numbers: %v, %v", ranges, err)
	}
	_, err := set.Next(t.Context(), "order")
	wantError(t, err, leaf.ErrOverflow)
	if strings.Contains(err.Error(), "00000") {
		t.Error(err)
	}
}

// At the end of a mask the waiting callers share the rest, also if a server hides the numbers.
func TestMaskedEndIsShared(t *testing.T) { synctest.Test(t, maskedEndIsShared) }

func maskedEndIsShared(t *testing.T) {
	_, inner := maskedSet(t, nil, 1)
	store := &hiding{Store: inner, left: 4, open: make(chan struct{})}
	set := segment.NewSet(store, nil)
	results := make(chan error, 6)
	for _, n := range []int{1, 1, 5, 1, 1, 1} { // the first one goes alone, the others wait behind it
		go func() {
			_, err := set.Take(t.Context(), "order", nil, n)
			results <- err
		}()
		synctest.Wait()
	}
	close(store.open)
	served := 0
	for range cap(results) {
		if err := <-results; err == nil {
			served++
		} else {
			wantError(t, err, leaf.ErrOverflow)
		}
	}
	if served != 4 {
		t.Errorf("%d callers of one number each had one, want 4", served)
	}
	if err := set.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A hiding store is that of a relay.
type hiding struct {
	segment.Store
	left int64
	open chan struct{} // closed: calls are answered
}

func (s *hiding) Advance(context.Context, string, int64) (segment.Grant, error) {
	return segment.Grant{}, segment.ErrMasked
}

func (s *hiding) AdvanceMasked(_ context.Context, _ string, n int64) (g segment.Grant, err error) {
	<-s.open
	if s.left == 0 {
		return g, leaf.ErrOverflow
	}
	for g.Step = 1; n > 0 && s.left > 0; n, s.left = n-1, s.left-1 {
		g.Masked = append(g.Masked, s.left)
	}
	return g, nil
}

// A lending server lends the remaining numbers.
func TestMaskedEndIsLent(t *testing.T) {
	set, _ := maskedSet(t, drivertest.MaskKeys, 999_998)
	g, err := set.Server().AdvanceStrict(t.Context(), "order", nil, true, 5)
	if err != nil || len(g.Masked) != 2 || !g.Range.Empty() {
		t.Errorf("got %+v, %v, want the last two numbers", g, err)
	}
	_, err = set.Server().AdvanceStrict(t.Context(), "order", nil, true, 5)
	wantError(t, err, leaf.ErrOverflow)
}

// A liar grants more numbers of a tag with a mask than the call wanted.
type liar struct{ segment.Store }

func (s liar) AdvanceMasked(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.Store.(segment.MaskedStore).AdvanceMasked(ctx, tag, n+1)
}

// An error with a plain number is one of the store, which front ends do not show.
func TestMaskedErrors(t *testing.T) {
	_, store := maskedSet(t, nil, 777)
	b := segment.NewBuffer(liar{store}, "order", &segment.Options{MaskKeys: drivertest.MaskKeys})
	_, err := b.Next(t.Context())
	told, ok := errors.AsType[*leaf.StoreError](err)
	if !ok || !strings.Contains(told.Error(), "777") || strings.Contains(strings.ReplaceAll(err.Error(), told.Error(), ""), "777") {
		t.Errorf("got %v", err)
	}
}

func TestMaskOptions(t *testing.T) {
	for _, o := range []segment.TagOptions{
		{"mask": "k1"}, {"mask": "k1:10^5"}, {"mask": "k 1:53"}, {"mask": ":53"}, {"mask": "k1:53:0123"}, {"mask": "k1:53:0123456789ab:"},
		{"mask": "k1:53", "order": "strict"}, {"mask": "k1:53", "period": "day"}, {"mask": "k1:10^9", "form": "{n:8}"},
	} {
		wantError(t, segment.Tag{Name: "order", MaxID: 1, Step: 1, Options: o}.Check(), leaf.ErrInvalid)
	}
	for _, o := range []segment.TagOptions{{"mask": "k1:63"}, {"mask": "k.1:10^9:0123456789ab", "form": "{n:9}"}} {
		if err := (segment.Tag{Name: "order", MaxID: 1, Step: 1, Options: o}).Check(); err != nil {
			t.Error(err)
		}
	}
	narrow := segment.TagOptions{"mask": "k1:10^9", "form": "{n:9}"}
	_, err := narrow.Change(segment.TagOptions{"form": "C-{n:8}"})
	wantError(t, err, leaf.ErrInvalid)
	for value, want := range map[string]int64{"k1:10^6": 1_000_000, "k1:53": 1 << 53, "k1:63": math.MaxInt64, "of a newer release": math.MaxInt64, "": 7} {
		if got := (segment.TagOptions{"mask": value}).Used(7); got != want {
			t.Errorf("after the mask %q a name begins at %d, want %d", value, got, want)
		}
	}
}

func TestCompleteMask(t *testing.T) {
	keys, print := drivertest.MaskKeys, drivertest.MaskKeys["k1"].Fingerprint()
	for value, want := range map[string]string{
		"k1:10^9": "k1:10^9:" + print, "k1:10^9:" + print: "k1:10^9:" + print, "k2:53:0123456789ab": "k2:53:0123456789ab", "": "",
		"k2:53": "error", "k1:53:0123456789ab": "error",
	} {
		got, err := keys.Complete(segment.TagOptions{"mask": value})
		if want == "error" {
			if !errors.Is(err, segment.ErrMaskKey) || strings.Contains(err.Error(), "0100000000") {
				t.Errorf("%q: %v", value, err)
			}
		} else if err != nil || got["mask"] != want {
			t.Errorf("%q: %v, %v", value, got, err)
		}
	}
}

// An unfit grant is an error of the store, whose words callers do not see: they name plain numbers.
func TestMaskedErrorsHideNumbers(t *testing.T) {
	for name, spoil := range map[string]func(g *segment.Grant){
		"fewer": func(g *segment.Grant) { g.Range.End-- },
		"more":  func(g *segment.Grant) { g.Range.End += 7 },
		"without room for a lift": func(g *segment.Grant) {
			g.Range = leaf.Range{Start: math.MaxInt64 - 20, End: math.MaxInt64 - 18}
		},
	} {
		inner := memory.New().Store()
		if err := inner.Create(t.Context(), masked); err != nil {
			t.Fatal(err)
		}
		store := &spoilt{MaskedStore: inner, Store: inner, spoil: spoil}
		set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{MaskKeys: drivertest.MaskKeys}})
		for range 2 {
			_, err := set.Take(t.Context(), "order", nil, 2)
			if unfit, ok := errors.AsType[*leaf.StoreError](err); err == nil || !ok && !strings.Contains(err.Error(), "the mask has no number left") {
				t.Errorf("%s: %v", name, err)
			} else if ok && strings.ContainsAny(strings.ReplaceAll(err.Error(), unfit.Error(), ""), "123456789") {
				t.Errorf("%s: callers see %v", name, err)
			}
			store.spoil = func(g *segment.Grant) { g.Range = leaf.Range{Start: 1, End: 3} } // it goes back
			if name != "without room for a lift" {
				break
			}
		}
		if err := set.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A spoilt store changes the grants of tags with a mask.
type spoilt struct {
	segment.MaskedStore
	segment.Store
	spoil func(g *segment.Grant)
}

func (s *spoilt) AdvanceMasked(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	g, err := s.MaskedStore.AdvanceMasked(ctx, tag, n)
	s.spoil(&g)
	return g, err
}
