package segment

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-id/leaf"
)

// Each figure of a buffer is in its statistics.
func TestEachFigure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newShared(&lyingStore{}, nil, (*Options)(nil).withDefaults())
		b := newBuffer("order", shared)
		since := time.Now().Add(-time.Minute)
		b.current.Store(newSpan(Grant{Range: leaf.Range{Start: 10, End: 30}}))
		b.current.Load().used.Store(5)
		b.queue = []*span{newSpan(Grant{Range: leaf.Range{Start: 50, End: 57}})}
		b.account = account{retired: 100, step: 3, grants: 4, failures: 5, calls: 6, callTime: 7 * time.Second, waits: 8, exhausted: 9, lost: 11, returned: 12}
		b.health, b.refill = storeHealth{err: errWaited, since: since}, &refill{}
		b.demand = demand{rate: 11, at: -time.Hour, issued: 105}
		b.guard.regressions.Store(13)
		got := b.Stats()
		want := Stats{
			Tag: "order", Loaded: true, Stock: 22, Issued: 105, Step: 3, Rate: got.Rate, Lasts: lasts(22, got.Rate), Refills: 4, Failures: 5, Regressions: 13,
			Refilling: true, Calls: 6, CallTime: 7 * time.Second, Waits: 8, Exhausted: 9, Lost: 11, Returned: 12, Err: errWaited, FailingSince: since,
			Segments: []SegmentStats{{leaf.Range{Start: 10, End: 30}, 15}, {leaf.Range{Start: 50, End: 57}, 50}},
		}
		if !reflect.DeepEqual(got, want) || got.Rate <= 0 || got.Rate >= 11 {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		if b.demand.rate != 11 {
			t.Error("the statistics change the estimate")
		}
		if fresh := newBuffer("x", shared).Stats(); !reflect.DeepEqual(fresh, Stats{Tag: "x"}) {
			t.Errorf("a new buffer: %+v", fresh)
		}
	})
	for _, c := range []struct {
		stock int64
		rate  float64
		want  time.Duration
	}{{0, 5, 0}, {10, 5, 2 * time.Second}, {1, 4, time.Second / 4}, {math.MaxInt64, 1e-9, math.MaxInt64}, {1 << 40, 1, math.MaxInt64}, {1 << 62, 5e8, math.MaxInt64}} {
		if got := lasts(c.stock, c.rate); got != c.want {
			t.Errorf("%d at %v last %v, want %v", c.stock, c.rate, got, c.want)
		}
	}
}

// Zero and negative options become the defaults, others stay, and the caller's own options never change.
func TestDefaults(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	var memory Memory = lossyNotes{}
	given := Options{
		Policy: Leaf, OutageBudget: 1, MaxStock: 2, Wait: 3, CallTimeout: 4, RegressionJump: 5, StoreID: "s", MaskKeys: MaskKeys{}, Memory: memory, Logger: logger,
	}
	if got := given.withDefaults(); got.Policy != Leaf || got.OutageBudget != 1 || got.MaxStock != 2 || got.Wait != 3 || got.CallTimeout != 4 || got.RegressionJump != 5 ||
		got.StoreID != "s" || got.MaskKeys == nil || got.Memory != memory || got.Logger != logger {
		t.Errorf("got %+v", got)
	}
	for _, o := range []*Options{nil, {}, {OutageBudget: -1, MaxStock: -1, Wait: -1, CallTimeout: -1, RegressionJump: -1}} {
		if got := o.withDefaults(); got.Policy != Adaptive || got.OutageBudget != DefaultOutageBudget || got.MaxStock != DefaultMaxStock || got.Wait != DefaultWait ||
			got.CallTimeout != DefaultCallTimeout || got.RegressionJump != 0 || got.Memory != (noMemory{}) || got.Logger == nil {
			t.Errorf("got %+v", got)
		}
	}
	for most, want := range map[int64]int64{maxMaxStock: maxMaxStock, maxMaxStock + 1: maxMaxStock, 1: 1} {
		if got := (&Options{MaxStock: most}).withDefaults(); got.MaxStock != want {
			t.Errorf("a loss budget of %d is %d", most, got.MaxStock)
		}
	}
	negative := NewSet(&lyingStore{}, &SetOptions{MaxCalls: -1, CheckInterval: -1})
	defer negative.Close(t.Context())
	if negative.opts.MaxCalls != DefaultMaxCalls || negative.opts.CheckInterval != DefaultCheckInterval {
		t.Errorf("got %+v", negative.opts)
	}
	s := NewSet(&lyingStore{}, &SetOptions{MaxCalls: 1, CheckInterval: time.Hour})
	defer s.Close(t.Context())
	if cap(s.places) != 1 || cap(s.lookupSlots) != 1 || s.opts.CheckInterval != time.Hour {
		t.Errorf("got %d calls, %d of unknown tags, %v", cap(s.places), cap(s.lookupSlots), s.opts.CheckInterval)
	}
	d := NewSet(&lyingStore{}, nil)
	defer d.Close(t.Context())
	if cap(d.places) != DefaultMaxCalls || cap(d.lookupSlots) != DefaultMaxCalls/2 || d.opts.CheckInterval != DefaultCheckInterval {
		t.Errorf("got %d calls, %d of unknown tags, %v", cap(d.places), cap(d.lookupSlots), d.opts.CheckInterval)
	}
}

// A lossyNotes remembers nothing, and fails.
type lossyNotes struct{ noMemory }

func (lossyNotes) Remember(string, string, Mark) error { return errWaited }

// An identityNotes remembers the identity of a store.
type identityNotes struct {
	noMemory
	mark Mark
	n    *int // of marks
}

func (m *identityNotes) Recall(tag string) map[string]Mark {
	if tag != identityTag {
		return nil
	}
	return map[string]Mark{"": m.mark}
}

func (m *identityNotes) Remember(tag, _ string, mark Mark) error {
	m.mark = mark
	*m.n++
	return nil
}

// An expecting store learns its identity.
type expecting struct {
	lyingStore
	told []string
}

func (s *expecting) Expect(identity string) { s.told = append(s.told, identity) }

// The known store is the required one, the remembered one, or that of the first grant with an
// identity, in this order. The set remembers it once, and tells the store.
func TestKnownStore(t *testing.T) {
	for _, c := range []struct {
		required, remembered string
		known                string
		written              int // marks
		grants               map[string]bool
	}{
		{"", "", "", 0, map[string]bool{"": true}},
		{"", "a", "a", 0, map[string]bool{"": true, "a": true, "b": false}},
		{"a", "", "a", 1, map[string]bool{"": false, "a": true, "b": false}},
		{"a", "a", "a", 0, map[string]bool{"": false, "a": true, "b": false}},
		{"a", "b", "a", 1, map[string]bool{"a": true, "b": false}},
	} {
		store, memory := &expecting{}, &identityNotes{mark: Mark{Server: c.remembered}, n: new(int)}
		opts := Options{StoreID: c.required, Memory: memory}
		s := newShared(store, nil, opts.withDefaults())
		if s.id.known != c.known || *memory.n != c.written || c.written > 0 && memory.mark.Server != c.known {
			t.Errorf("%+v: known %q, %d marks, the last %+v", c, s.id.known, *memory.n, memory.mark)
		}
		if told := len(store.told) > 0; told != (c.known != "") || told && (len(store.told) != 1 || store.told[0] != c.known) {
			t.Errorf("%+v: the store was told %q", c, store.told)
		}
		for id, ok := range c.grants {
			if err := s.checkStore(Grant{Store: id}); (err == nil) != ok || err != nil && !errors.Is(err, ErrForeignStore) {
				t.Errorf("%+v: a grant of %q: %v", c, id, err)
			}
		}
	}
	memory := &identityNotes{n: new(int)}
	s := newShared(&lyingStore{}, nil, (&Options{Memory: memory}).withDefaults())
	for _, id := range []string{"", "a", "a", ""} {
		if err := s.checkStore(Grant{Store: id}); err != nil {
			t.Error(err)
		}
	}
	if err := s.checkStore(Grant{Store: "b"}); err == nil || s.id.known != "a" || *memory.n != 1 || memory.mark.Server != "a" {
		t.Errorf("%v, known %q, %d marks", err, s.id.known, *memory.n)
	}
}

// A batch takes a part of the stock only where the rest comes.
func TestAffords(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		stock, n, issued, step int64
		ended, delivered, leaf bool
		want                   bool
	}{
		{stock: 10, n: 10, step: 10, want: true}, {stock: 10, n: 11, step: 10}, {stock: 10, n: 11, delivered: true, want: true},
		{stock: 10, n: 11, ended: true, delivered: true}, {stock: 10, n: 10, ended: true, want: true},
		{stock: 10, n: 11, issued: 4, step: 5, want: true}, {stock: 10, n: 11, issued: 5, step: 5}, {stock: 10, n: 11, issued: 4, step: 5, leaf: true},
	} {
		o := Options{}
		if c.leaf {
			o.Policy = Leaf
		}
		b := NewBuffer(&lyingStore{}, "order", &o)
		b.account.retired, b.account.step = c.issued, c.step
		b.queue = []*span{newSpan(Grant{Range: leaf.Range{End: 3}}), newSpan(Grant{Range: leaf.Range{Start: 20, End: 17 + c.stock}})}
		ctx := t.Context()
		if c.ended {
			ctx = ended
		}
		if got := b.affords(ctx, c.n, c.delivered); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	b := NewBuffer(&lyingStore{}, "order", &Options{MaxStock: 100})
	for _, c := range [][3]int64{{0, 0, 1}, {0, 7, 7}, {5, 7, 5}, {100, 7, 100}, {101, 7, 100}, {0, 1000, 100}} {
		b.account.step = c[1]
		if got := b.lendable(c[0]); got != c[2] {
			t.Errorf("a loan of %d with step %d may have %d", c[0], c[1], got)
		}
	}
}

// The estimate of demand follows two high windows at once, and forgets within minutes.
func TestDemand(t *testing.T) {
	var d demand
	record := func(now time.Duration, issued int64, rate float64) {
		t.Helper()
		if d.record(now, issued); math.Abs(d.rate-rate) > 0.01*rate+0.001 {
			t.Errorf("at %v with %d issued: %v a second, want %v", now, issued, d.rate, rate)
		}
	}
	record(0, 1000, 0)
	record(demandWindow-1, 1000, 0) // too early for a look
	record(time.Second, 1000, 1000*(1-math.Exp(-1.0/60)))
	record(2*time.Second, 2000, 1000) // the second window in a row
	record(2*time.Second+demandWindow-1, 9000, 1000)
	record(3*time.Second, 2000, 1000*math.Exp(-1.0/60))
	record(4*time.Second, 1000, 1000*math.Exp(-2.0/60)) // given back
	record(4*time.Second+time.Minute, 1000, 1000*math.Exp(-2.0/60-1))
	record(10*time.Minute, 1000, 1000*math.Exp(-598.0/60))
}

// A span gives each number to one owner, from the front, and takes back only its latest loan.
func TestSpanModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size, first := rapid.Int64Range(1, 30).Draw(t, "size"), rapid.Int64Range(0, 100).Draw(t, "first")
		s := newSpan(Grant{Range: leaf.Range{Start: first, End: first + size}})
		used := int64(0)
		wants := func(what string, got leaf.Range, n int64) {
			if want := (leaf.Range{Start: first + used, End: first + used + n}); n > 0 && got != want || n == 0 && !got.Empty() {
				t.Fatalf("%s at %d of %d: %v, want %d", what, used, size, got, n)
			}
			if used += n; s.issued() != used || s.remaining() != size-used {
				t.Fatalf("%s: %d issued and %d left, want %d of %d", what, s.issued(), s.remaining(), used, size)
			}
		}
		over := false // the cursor is beyond the end
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				n := rapid.Int64Range(1, 12).Draw(t, "n")
				over = over || used < size && used+n > size
				wants("reserve", s.reserve(n), min(n, size-used))
			},
			"reserveAtLeast": func(t *rapid.T) {
				n := rapid.Int64Range(1, 12).Draw(t, "n")
				least, got := rapid.Int64Range(1, n).Draw(t, "least"), min(n, size-used)
				if got < least {
					got = 0
				}
				wants("reserveAtLeast", s.reserveAtLeast(least, n), got)
			},
			"unreserve": func(t *rapid.T) {
				end := rapid.Int64Range(0, size).Draw(t, "end")
				start := rapid.Int64Range(0, end).Draw(t, "start")
				ok := s.unreserve(first+end, first+start)
				if ok != (end == used && !over) {
					t.Fatalf("%d … %d goes back at %d: %v", start, end, used, ok)
				}
				if ok {
					used = start
				}
			},
			"": func(t *rapid.T) {
				if s.issued() != used {
					t.Fatalf("%d issued, want %d", s.issued(), used)
				}
			},
		})
		if got, want := s.seal(), (leaf.Range{Start: first + used, End: first + size}); got != want {
			t.Fatalf("sealed with %v left, want %v", got, want)
		}
		if !s.reserve(1).Empty() || !s.reserveAtLeast(1, 1).Empty() || s.remaining() != 0 || s.unreserve(first+used, first) || !s.seal().Empty() {
			t.Fatal("a sealed span serves")
		}
	})
}

// The first long enough run counts, over as many spans as touch.
func TestRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []*span
		owned := map[int64]bool{}
		at := int64(0)
		for range rapid.IntRange(1, 5).Draw(t, "spans") {
			at += rapid.SampledFrom([]int64{0, 0, 3}).Draw(t, "gap")
			s := newSpan(Grant{Range: leaf.Range{Start: at, End: at + rapid.Int64Range(1, 6).Draw(t, "size")}})
			s.used.Store(rapid.SampledFrom([]int64{0, 0, 1, 6}).Draw(t, "used"))
			for n := s.start + s.issued(); n < s.start+s.size; n++ {
				owned[n] = true
			}
			spans = append(spans, s)
			at += s.size
		}
		n := rapid.Int64Range(1, 9).Draw(t, "n")
		want := int64(-1)
		for start := int64(0); start <= at && want < 0; start++ {
			whole := true
			for k := range n {
				whole = whole && owned[start+k]
			}
			if whole {
				want = start
			}
		}
		first := firstRun(spans, n)
		if (first >= 0) != (want >= 0) {
			t.Fatalf("a run of %d: in span %d, want one from %d", n, first, want)
		}
		if first >= 0 {
			if run := reserveRun(spans[first:], n); run.Len() != n || run.Start != want {
				t.Fatalf("a run of %d: %v, want one from %d", n, run, want)
			}
		}
	})
}
