package segment

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
)

// The size of the next allocation, at each bound and one off it.
func TestAdaptiveSize(t *testing.T) {
	for _, c := range []struct{ stock, short, step, issued, recent, max, want int64 }{
		{0, 0, 10, 0, 0, 100, 10},
		{9, 0, 10, 0, 0, 100, 0},         // nine tenths of a step
		{8, 0, 10, 0, 0, 100, 10},        // just below
		{9, 10, 10, 0, 0, 100, 10},       // callers need more
		{10, 10, 10, 0, 0, 100, 0},       // they have it
		{0, 0, 10, 1000, 50, 100, 50},    // the recent use
		{44, 0, 10, 1000, 50, 100, 10},   // at least a step
		{30, 0, 10, 1000, 50, 100, 20},   // up to the target
		{0, 70, 10, 1000, 50, 100, 70},   // the callers' need
		{0, 170, 10, 1000, 50, 100, 100}, // the loss budget
		{95, 170, 10, 1000, 50, 100, 5},
		{0, 0, 10, 1000, 5000, 100, 100},
		{0, 70, 10, 20, 15, 100, 20},  // no more than was issued
		{5, 70, 10, 25, 15, 100, 20},  // less the stock
		{30, 70, 10, 20, 15, 100, 10}, // at the bound, still a step
		{31, 70, 10, 20, 15, 100, 0},  // above it
		{200, 300, 10, 1000, 50, 100, 0},
	} {
		if got := adaptiveSize(c.stock, c.short, c.step, c.issued, c.recent, c.max); got != c.want {
			t.Errorf("%+v: got %d", c, got)
		}
	}
}

// The recent use is that of the last budget, to a twentieth of it.
func TestRecentUse(t *testing.T) {
	const budget, tick = 20 * time.Second, time.Second
	var u recentUse
	at := func(now time.Duration, issued, want int64) {
		t.Helper()
		if got := u.record(now, budget, issued); got != want {
			t.Errorf("at %v with %d issued: %d are recent, want %d", now, issued, got, want)
		}
	}
	at(5*time.Second, 7, 7) // the first sample counts the calls before
	for i := range 20 {
		at(5*time.Second+time.Duration(i)*tick, int64(10*i+7), int64(10*i+7))
	}
	if len(u) != 20 {
		t.Errorf("%d samples, want one a second", len(u))
	}
	at(24*time.Second+tick-1, 198, 198)
	at(25*time.Second, 207, 207) // the first sample is as old as the budget
	at(26*time.Second, 217, 200) // the second one is: the first is gone
	at(36*time.Second, 217, 100)
	at(36*time.Second, 100, 0)    // IDs were given back
	at(10*time.Minute, 300, 83+0) // all samples are old: it counts from the latest
	if len(u) != 2 {
		t.Errorf("%d samples are kept", len(u))
	}
}

// The looks at the stock fall to one caller for each tenth, or each half of the rest.
func TestDue(t *testing.T) {
	for size, want := range map[int64][]int64{
		1: {1}, 2: {2}, 3: {2}, 10: {3, 5, 7, 9}, 100: {12, 23, 34, 45, 56, 67, 78, 89, 95, 98, 100},
	} {
		s := newSpan(Grant{Range: leaf.Range{End: size}})
		var got []int64
		for used := int64(1); used <= size; used++ {
			if s.due(used) {
				got = append(got, used)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("of %d: %v, want %v", size, got, want)
		}
	}
}

// A failing store is called after a random pause that doubles, up to a second, or to a tenth of it
// while callers wait.
func TestStoreHealth(t *testing.T) {
	now := time.Now()
	for _, waited := range []bool{false, true} {
		var h storeHealth
		for i := range 12 {
			at := now.Add(time.Duration(i) * time.Second)
			if first := h.failed(at, errWaited, waited); first != (i == 0) {
				t.Errorf("failure %d is the first: %v", i, first)
			}
			most := min(time.Second, 10*time.Millisecond<<i)
			if waited {
				most = min(most, 100*time.Millisecond)
			}
			if pause := h.retryAt.Sub(at); pause < 0 || pause >= most {
				t.Errorf("after failure %d: a pause of %v, want below %v", i, pause, most)
			}
			if !h.since.Equal(now) || int(h.failures) != i+1 || h.err != errWaited {
				t.Errorf("after failure %d: %+v", i, h)
			}
		}
	}
	longest := time.Duration(0)
	for range 200 {
		h := storeHealth{failures: 30}
		h.failed(now, errWaited, false)
		longest = max(longest, h.retryAt.Sub(now))
	}
	if longest < 500*time.Millisecond {
		t.Errorf("the longest of 200 pauses is %v", longest)
	}
	const wait = time.Second
	h := storeHealth{err: errWaited, since: now, retryAt: now}
	if h.resume(now.Add(wait), wait); !h.since.Equal(now) {
		t.Error("a recent failure is forgotten")
	}
	if h.resume(now.Add(wait+1), wait); !h.since.Equal(now.Add(wait + 1)) {
		t.Error("an old failure counts")
	}
	var well storeHealth
	if well.resume(now, wait); well != (storeHealth{}) {
		t.Errorf("a well store becomes %+v", well)
	}
}

// A caller waits for a store that fails for less than the caller's time, unless no wait helps.
func TestRefusal(t *testing.T) {
	const wait = time.Second
	now := time.Now()
	down, full, odd := errors.New("down"), fmt.Errorf("x: %w", leaf.ErrOverflow), fmt.Errorf("x: %w", leaf.ErrInvalid)
	closed, unfit := fmt.Errorf("x: %w", leaf.ErrClosed), fmt.Errorf("x: %w", leaf.ErrUnsupported)
	for _, c := range []struct {
		err           error
		since, retry  time.Duration // ago
		trying, waits bool
	}{
		{nil, 2 * wait, 2 * wait, true, true}, {nil, 2 * wait, 2 * wait, false, true},
		{down, wait - 1, 0, true, true}, {down, wait, 0, true, false}, {down, wait, 0, false, false},
		{down, wait, 1, false, true}, {down, wait, 1, true, false},
		{full, 0, 0, true, false}, {closed, 0, 0, true, false}, {unfit, 0, 0, true, false}, {odd, 0, 0, true, false},
		{full, 0, 1, false, true},
	} {
		h := storeHealth{err: c.err, since: now.Add(-c.since), retryAt: now.Add(-c.retry)}
		if err := h.refusal(now, wait, c.trying); (err == nil) != c.waits || err != nil && err != c.err {
			t.Errorf("%+v: %v", c, err)
		}
	}
	for err, want := range map[error][2]bool{down: {}, full: {true, false}, closed: {true, false}, unfit: {false, true}, odd: {false, true}} {
		if isFinal(err) != want[0] || isUnfit(err) != want[1] || isPermanent(err) != (want[0] || want[1]) {
			t.Errorf("%v: final %v, unfit %v, permanent %v", err, isFinal(err), isUnfit(err), isPermanent(err))
		}
	}
}

// A name or an option is refused for the reason that it is.
func TestReasons(t *testing.T) {
	long := strings.Repeat("é", MaxTagLength)
	for name, want := range map[string]string{
		"order": "", " ": "", "~": "", "é": "", long: "", strings.Repeat("x", MaxTagLength): "",
		"": "is empty", "a\xff": "not valid UTF-8", long + "é": "longer than 128", long + "x": "longer than 128",
		"a\x1f": "control character", "a\x7f": "control character", "é\u0085": "control character",
	} {
		err := CheckTagName(name)
		if (err == nil) != (want == "") || err != nil && (!errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: %v", name, err)
		}
		if known := CheckKnown(name); (known == nil) != (err == nil) || known != nil && !errors.Is(known, leaf.ErrUnknownTag) {
			t.Errorf("%q: %v", name, known)
		}
		if plain := isPlain(name); plain && (err != nil || strings.ContainsFunc(name, func(r rune) bool { return r > '~' })) || !plain && strings.Trim(name, "oder ~x") == "" && err == nil {
			t.Errorf("%q is plain: %v", name, plain)
		}
	}
	for name, o := range map[string]TagOptions{
		"of an option": {"A": "x"}, "small letters": {strings.Repeat("a", maxOptionName+1): "x"}, "not valid UTF-8": {"a": "\xff"},
		"longer than 256": {"a": strings.Repeat("é", MaxOptionValue+1)}, "the order": {OptionOrder: "x"},
	} {
		if err := o.Check(); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: %v", o, err)
		}
	}
	for _, o := range []TagOptions{nil, {}, {strings.Repeat("a", maxOptionName): strings.Repeat("é", MaxOptionValue)}, {OptionOrder: ""}, {OptionOrder: OrderStrictLossy}} {
		if err := o.Check(); err != nil {
			t.Errorf("%v: %v", o, err)
		}
	}
	for step, ok := range map[int64]bool{0: false, 1: true, MaxStep: true, MaxStep + 1: false} {
		for maxID, fine := range map[int64]bool{-1: false, 0: true, math.MaxInt64: true} {
			err := Tag{Name: "order", Step: step, MaxID: maxID}.Check()
			if (err == nil) != (ok && fine) || err != nil && !errors.Is(err, leaf.ErrInvalid) {
				t.Errorf("step %d, max_id %d: %v", step, maxID, err)
			}
		}
	}
}

// Options join: a later value wins, an empty one removes, and neither side changes.
func TestWith(t *testing.T) {
	for _, c := range []struct{ o, change, want TagOptions }{
		{nil, nil, nil}, {TagOptions{}, TagOptions{}, nil}, {TagOptions{"a": "1"}, nil, TagOptions{"a": "1"}},
		{nil, TagOptions{"a": "1"}, TagOptions{"a": "1"}}, {TagOptions{"a": "1"}, TagOptions{"a": ""}, nil},
		{nil, TagOptions{"a": ""}, nil}, {TagOptions{"a": "1", "b": "2"}, TagOptions{"a": "3", "c": "4"}, TagOptions{"a": "3", "b": "2", "c": "4"}},
	} {
		before := [2]TagOptions{maps.Clone(c.o), maps.Clone(c.change)}
		got := c.o.With(c.change)
		if !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%v with %v: %v", c.o, c.change, got)
		}
		if !maps.Equal(c.o, before[0]) || !maps.Equal(c.change, before[1]) {
			t.Errorf("%v with %v changes them", before[0], before[1])
		}
	}
}

// Tags are the same if all their fields are; a change is zero if it changes nothing.
func TestSameAndZero(t *testing.T) {
	now := time.Now()
	a := Tag{Name: "a", MaxID: 1, Step: 2, Options: TagOptions{"x": "y"}, Updated: now}
	if b := a; !a.Same(b) {
		t.Error("a tag differs from itself")
	}
	for _, b := range []Tag{
		{Name: "b", MaxID: 1, Step: 2, Options: a.Options, Updated: now}, {Name: "a", MaxID: 2, Step: 2, Options: a.Options, Updated: now},
		{Name: "a", MaxID: 1, Step: 1, Options: a.Options, Updated: now}, {Name: "a", MaxID: 1, Step: 2, Updated: now},
		{Name: "a", MaxID: 1, Step: 2, Options: a.Options, Updated: now.Add(1)},
	} {
		if a.Same(b) || b.Same(a) {
			t.Errorf("%+v is the same", b)
		}
	}
	one := int64(1)
	for _, c := range []Change{{Step: &one}, {MaxID: &one}, {Options: TagOptions{"a": ""}}} {
		if c.IsZero() {
			t.Errorf("%+v changes nothing", c)
		}
	}
	if !(Change{Force: true}).IsZero() {
		t.Error("Force alone is a change")
	}
}

// A grant counts as small if the caller asked for more and it does not follow the one before.
func TestTooSmall(t *testing.T) {
	for _, c := range []struct {
		asked, granted int64
		follows, want  bool
	}{{10, 9, false, true}, {10, 10, false, false}, {10, 11, false, false}, {9, 5, false, false}, {11, 5, false, true}, {10, 9, true, false}} {
		b := &Buffer{account: account{asked: c.asked, granted: c.granted}, follows: c.follows}
		if got := b.tooSmall(10); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// A throttle lets one event a second pass, and tells of the others.
func TestThrottle(t *testing.T) {
	var th throttle
	now := time.Now()
	for _, c := range []struct {
		at   time.Duration
		held int
		ok   bool
	}{{0, 0, true}, {1, 0, false}, {time.Second - 1, 0, false}, {time.Second, 2, true}, {2*time.Second - 1, 0, false}, {5 * time.Second, 1, true}, {9 * time.Second, 0, true}} {
		if held, ok := th.pass(now.Add(c.at)); held != c.held || ok != c.ok {
			t.Errorf("at %v: %d, %v", c.at, held, ok)
		}
	}
}

// A lyingStore gives one grant.
type lyingStore struct {
	grant Grant
	err   error
}

func (s *lyingStore) Advance(context.Context, string, int64) (Grant, error) { return s.grant, s.err }
func (s *lyingStore) Tags(context.Context) iter.Seq2[Tag, error] {
	return func(func(Tag, error) bool) {}
}

// An impossible grant fails, and its IDs are never issued.
func TestImpossibleGrants(t *testing.T) {
	for name, g := range map[string]Grant{
		"negative": {Range: leaf.Range{Start: -1, End: 5}, Step: 10}, "empty": {Range: leaf.Range{Start: 5, End: 5}, Step: 10},
		"backwards": {Range: leaf.Range{Start: 6, End: 5}, Step: 10}, "too many": {Range: leaf.Range{Start: 1, End: 8}, Step: 10},
		"no step": {Range: leaf.Range{Start: 1, End: 7}}, "hidden": {Range: leaf.Range{Start: 1, End: 7}, Step: 10, Masked: []int64{5}},
	} {
		b := NewBuffer(&lyingStore{grant: g}, "order", nil)
		if got, err := b.call(t.Context(), "", 6); err == nil || !got.Range.Empty() || !strings.Contains(err.Error(), "when asked for 6") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	for n, size := range map[int64]int64{0: 1000, 6: 6, 7: 1} {
		b := NewBuffer(&lyingStore{grant: Grant{Range: leaf.Range{Start: 0, End: size}, Step: 1}}, "order", nil)
		if got, err := b.call(t.Context(), "", n); err != nil || got.Range.Len() != size {
			t.Errorf("%d when asked for %d: %+v, %v", size, n, got, err)
		}
	}
}

// While the store fails, an allocation is no larger than a step or the callers' need.
func TestSizeWhileFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBuffer(&lyingStore{}, "order", nil)
		b.account = account{grants: 3, step: 10, retired: 5000, lastAt: time.Now()}
		b.use = &recentUse{{}}
		for _, c := range []struct {
			err   error
			short int64
			want  int64
		}{{nil, 0, 5000}, {errWaited, 0, 10}, {errWaited, 70, 70}, {errWaited, 9000, 5000}, {nil, 9000, 5000}} {
			b.health.err, b.short = c.err, c.short
			if n, due := b.size(time.Now()); n != c.want || !due {
				t.Errorf("%v, %d needed: %d, %v, want %d", c.err, c.short, n, due, c.want)
			}
		}
	})
}
