package worker

import (
	"context"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
)

var errDown = errors.New("the network is down")

// A scripted registry keeps records. A test decides on its swaps and reads.
type scripted struct {
	mu      sync.Mutex // of records and swapped, where a holder runs
	records map[int64]Record
	clock   time.Time
	swapped [][2]Record
	swap    func(old, next Record) error // nil: all work
	load    func() error
	list    func() error
}

func (r *scripted) Load(_ context.Context, id int64) (Record, error) {
	if r.load != nil {
		if err := r.load(); err != nil {
			return Record{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return view{records: r.records}.record(id), nil
}

func (r *scripted) Swap(_ context.Context, old, next Record) (Record, error) {
	r.mu.Lock()
	r.swapped = append(r.swapped, [2]Record{old, next})
	r.mu.Unlock()
	if r.swap != nil {
		if err := r.swap(old, next); err != nil {
			return Record{}, err
		}
	}
	r.mu.Lock()
	found := r.records[old.Worker]
	r.mu.Unlock()
	if !found.same(old) && !(old.IsZero() && found.IsZero()) {
		return Record{}, ErrConflict
	}
	r.put(next)
	return next, nil
}

// swaps returns the number of swaps.
func (r *scripted) swaps() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.swapped)
}

func (r *scripted) put(next Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.records == nil {
		r.records = map[int64]Record{}
	}
	r.records[next.Worker] = next
}

func (r *scripted) List(context.Context) (list []Record, err error) {
	if r.list != nil {
		if err := r.list(); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, found := range r.records {
		list = append(list, found)
	}
	return list, nil
}

func (r *scripted) Clock(context.Context) (time.Time, error) { return r.clock, nil }

// Free cells come before expired ones, and low ones before high ones.
func TestUnused(t *testing.T) {
	at := func(d time.Duration, held bool) (r Record) {
		if r.Horizon = now.Add(d); held {
			r.Instance = Instance{1}
		}
		return r
	}
	v := view{records: map[int64]Record{9: at(-1, false), 10: at(0, true), 11: at(0, false), 13: at(2, true), 14: at(1, false), 15: at(3, true), 16: at(-1, true)}}
	if cells, _ := unused(v, 10, 5, now, 0); !slices.Equal(cells, []int64{11, 12, 10}) {
		t.Errorf("got %v", cells)
	}
	if cells, _ := unused(v, 13, 2, now, 1); !slices.Equal(cells, []int64{14}) {
		t.Errorf("ahead: %v", cells)
	}
	if cells, first := unused(v, 13, 2, now, 0); len(cells) > 0 || !first.Equal(now.Add(1)) {
		t.Errorf("got %v, the first one is free %v", cells, first)
	}
	if cells, _ := unused(v, 100, 1<<31, now, 0); len(cells) != maxFree || cells[0] != 100 || cells[maxFree-1] != 100+maxFree-1 {
		t.Errorf("%d cells", len(cells))
	}
}

// Which record replaces the present one when a lease of the state file is handed back.
func TestReleased(t *testing.T) {
	mine := savedLease{Identity: "this file", Instance: Instance{1}, Term: 5, Horizon: milliTime{now.Add(time.Hour)}, Mark: milliTime{now}, Layouts: []ServedLayout{{Name: "b"}}}
	held := Record{Instance: mine.Instance, Term: 5, Horizon: mine.Horizon.Time, Layouts: []ServedLayout{{Name: "a"}, {Name: "b", Tick: 1}}, Owner: "o"}
	free := held
	free.Instance, free.Horizon = Instance{}, now
	older := Record{Term: 4, Horizon: now.Add(-1), Layouts: []ServedLayout{{Name: "a"}}}
	putBack := Record{Term: 5, Horizon: now, Layouts: []ServedLayout{{Name: "a"}, {Name: "b"}}}
	change := func(r Record, f func(*Record)) Record { f(&r); return r }
	for _, tt := range []struct {
		name     string
		identity string // of the file
		reclaim  bool
		lease    func(*savedLease)
		old      Record
		want     *Record // nil: it is left alone
	}{
		{"held", "this file", false, nil, held, &free},
		{"another file", "another file", false, nil, held, nil},
		{"no identity", "", false, func(l *savedLease) { l.Identity = "" }, held, nil},
		{"its own, sealed", "", false, func(l *savedLease) { l.sealed = true }, held, &free},
		{"reclaimed", "another file", true, nil, held, &free},
		{"reclaimed, out of date", "another file", true, nil, change(held, func(r *Record) { r.Horizon = r.Horizon.Add(1) }), nil},
		{"extended since", "this file", false, nil, change(held, func(r *Record) { r.Horizon = r.Horizon.Add(1) }), &free},
		{"another instance", "this file", false, nil, change(held, func(r *Record) { r.Instance[0]++ }), nil},
		{"another term", "this file", false, nil, change(held, func(r *Record) { r.Term++ }), nil},
		{"lost", "this file", false, nil, older, &putBack},
		{"lost, another one's floor", "this file", false, nil, change(older, func(r *Record) { r.Horizon = now }), nil},
		{"the same term of another one", "this file", false, nil, change(older, func(r *Record) { r.Term = 5 }), nil},
		{"refused layouts", "this file", false, func(l *savedLease) { l.refused = true }, held, new(change(free, func(r *Record) { r.Layouts = mine.Layouts }))},
	} {
		k := stillKeeper(t, Options{Reclaim: tt.reclaim})
		k.opts.State = NewStateFile(nil, tt.identity)
		lease := mine
		if tt.lease != nil {
			tt.lease(&lease)
		}
		next, ok := k.released(&lease, tt.old)
		if ok != (tt.want != nil) || ok && !next.Equal(*tt.want) {
			t.Errorf("%s: %v, %+v", tt.name, ok, next)
		}
	}
}

// Layouts are merged by name; those of the record stay.
func TestMergeLayouts(t *testing.T) {
	old, ours := []ServedLayout{{Name: "c", Tick: 1}, {Name: "a", Tick: 1}}, []ServedLayout{{Name: "d"}, {Name: "c", Tick: 2}, {Name: "b"}}
	want := []ServedLayout{{Name: "a", Tick: 1}, {Name: "b"}, {Name: "c", Tick: 1}, {Name: "d"}}
	if got := mergeLayouts(old, ours); !slices.Equal(got, want) {
		t.Errorf("got %+v", got)
	}
}

// A layout's values stay, and so does a scheme's default.
func TestCheckLayouts(t *testing.T) {
	ours, other := ServedLayout{Name: "b", Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12}, ServedLayout{Name: "b", Tick: 2}
	def := ours.Default("s")
	record := func(layouts ...ServedLayout) Record { return Record{Worker: 7, Owner: "o", Layouts: layouts} }
	for name, tt := range map[string]struct {
		ours    []ServedLayout
		records []Record
		theirs  *ServedLayout // of the error
	}{
		"none":                              {[]ServedLayout{ours}, nil, nil},
		"the same":                          {[]ServedLayout{ours}, []Record{record(ours)}, nil},
		"another name":                      {[]ServedLayout{ours}, []Record{record(ServedLayout{Name: "c", Tick: 2})}, nil},
		"other values":                      {[]ServedLayout{ours}, []Record{record(other)}, &other},
		"other values behind others":        {[]ServedLayout{{Name: "a"}, ours}, []Record{record(ours), record(ServedLayout{Name: "a"}, other)}, &other},
		"the first default":                 {[]ServedLayout{def}, []Record{record()}, nil},
		"it may have been the default":      {[]ServedLayout{def}, []Record{record(other), record(other, ServedLayout{Name: "x", Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12})}, nil},
		"it was not the default":            {[]ServedLayout{def}, []Record{record(other)}, &other},
		"another scheme's default is known": {[]ServedLayout{def}, []Record{record(other, other.Default("t"))}, nil},
		"the default is known":              {[]ServedLayout{def}, []Record{record(other), record(other), record(def), record(other), record(other)}, nil},
		"the second default":                {[]ServedLayout{def, other.Default("t")}, []Record{record(ServedLayout{Name: "x", Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12}), record(ours.Default("t"))}, new(ours.Default("t"))},
	} {
		records := map[int64]Record{}
		for i, r := range tt.records {
			records[int64(i)] = r
		}
		err := checkLayouts(tt.ours, records)
		refused, ok := errors.AsType[*LayoutError](err)
		if ok != (tt.theirs != nil) || (err != nil) != ok {
			t.Errorf("%s: %v", name, err)
		} else if ok && (refused.Theirs != *tt.theirs || refused.Worker != 7 || refused.Owner != "o" || refused.Ours != tt.ours[len(tt.ours)-1]) {
			t.Errorf("%s: %+v", name, refused)
		}
	}
}

// A layout in an error has its values, and its owner a name.
func TestLayoutErrorText(t *testing.T) {
	l := ServedLayout{Name: "b", Epoch: 1000, Tick: 10, TimeBits: 41, WorkerBits: 10, SequenceBits: 12}
	got := (&LayoutError{Ours: l, Theirs: l, Worker: 7}).Error()
	if want := "41/10/12 bits of 10ms from 1970-01-01T00:00:01Z (worker ID 7, an unknown node)"; !strings.Contains(got, want) || !strings.Contains(got, `layout "b" is`) {
		t.Error(got)
	}
	if got := (&LayoutError{Ours: l.Default("s"), Theirs: l, Owner: "o"}).Error(); !strings.Contains(got, "the default layout of s is") || !strings.Contains(got, ", o)") {
		t.Error(got)
	}
}

// What becomes of a swap that claims a worker ID, by its answer and by the next read.
func TestPlace(t *testing.T) {
	old := Record{Worker: 3, Term: 4, Version: "1"}
	next := Record{Worker: 3, Term: 5, Instance: Instance{1}, Horizon: now}
	rival := Record{Worker: 3, Term: 5, Instance: Instance{2}, Horizon: now}
	written := old
	written.Version = "2"
	for _, tt := range []struct {
		name          string
		swap, load    error
		found         Record
		again         error // of the second swap
		want          error
		pending, wins bool
	}{
		{"works", nil, nil, old, nil, nil, false, true},
		{"not answered, written", errDown, nil, next, nil, nil, false, true},
		{"not answered twice, written", errDown, nil, next, errDown, errDown, true, false},
		{"conflict, but ours", ErrConflict, nil, next, nil, nil, false, true},
		{"not answered, not written", errDown, nil, old, nil, errDown, true, false},
		{"not answered, written again by others", errDown, nil, written, nil, errDown, true, false},
		{"not answered, not read", errDown, io.EOF, old, nil, io.EOF, true, false},
		{"not answered, a rival", errDown, nil, rival, nil, ErrConflict, false, false},
		{"conflict", ErrConflict, nil, rival, nil, ErrConflict, false, false},
		{"conflict, written again", ErrConflict, nil, written, nil, ErrConflict, false, false},
		{"conflict with the record that is there", ErrConflict, nil, old, nil, ErrStaleReads, true, false},
	} {
		r := &scripted{records: map[int64]Record{3: old}, load: func() error { return tt.load }}
		errs := []error{tt.swap, tt.again}
		r.swap = func(_, _ Record) error {
			if len(errs) == 2 && tt.swap != nil {
				r.put(tt.found)
			}
			err := errs[0]
			errs = errs[1:]
			return err
		}
		k := (&stillClock{wall: now}).keeper(t, r, Options{})
		k.pending = &bid{}
		got, err := k.place(t.Context(), bid{old, next})
		if !errors.Is(err, tt.want) || (k.pending != nil) != tt.pending || (err == nil) != tt.wins {
			t.Errorf("%s: %v, pending %v", tt.name, err, k.pending)
		}
		if tt.pending && (!k.pending.next.Equal(next) || !k.pending.old.same(old)) {
			t.Errorf("%s: the pending bid is %+v", tt.name, k.pending)
		}
		if tt.wins && (got.Instance != next.Instance || got.Term != 5 || tt.swap != nil != got.Horizon.After(now)) {
			t.Errorf("%s: got %+v", tt.name, got)
		}
		if errors.Is(err, ErrStaleReads) && errors.Is(err, ErrConflict) {
			t.Errorf("%s: a rival: %v", tt.name, err)
		}
	}
}

// A bid of unknown outcome is repeated as long as half of its lease would be left.
func TestBid(t *testing.T) {
	k := stillKeeper(t, Options{Horizon: time.Hour, Owner: "n", Layouts: []ServedLayout{{Name: "b", WorkerBits: 3}}})
	old := Record{Worker: 5, Term: 7, ClaimDelay: time.Minute, Layouts: []ServedLayout{{Name: "a"}}, Version: "1"}
	v := view{registry: now, records: map[int64]Record{5: old}, offset: 3}
	first := k.bid(v, 5, now.Add(time.Hour))
	want := Record{Worker: 5, Instance: first.next.Instance, Term: 8, Horizon: now.Add(time.Hour), ClaimDelay: time.Minute,
		Layouts: []ServedLayout{{Name: "a"}, {Name: "b", WorkerBits: 3}}, Owner: "n", Seen: now, Offset: 3}
	if !first.next.Equal(want) || !first.next.Held() || !first.old.same(old) {
		t.Errorf("got %+v", first)
	}
	for _, tt := range []struct {
		name    string
		horizon time.Duration
		old     Record
		repeats bool
	}{
		{"young", time.Hour/2 + 1, old, true},
		{"old", time.Hour / 2, old, false},
		{"for another record", time.Hour, Record{Worker: 5}, false},
	} {
		pending := bid{tt.old, first.next}
		pending.next.Horizon = now.Add(tt.horizon)
		k.pending = &pending
		v.records[5] = old
		got := k.bid(v, 5, now.Add(time.Hour))
		if repeats := got.next.Instance == first.next.Instance; repeats != tt.repeats || !got.old.same(old) {
			t.Errorf("%s: repeated: %v, %+v", tt.name, repeats, got)
		}
	}
}

// An assigner is a scripted registry with one worker ID.
type assigner struct {
	*scripted
	id  int64
	err error
}

func (a assigner) Assign(context.Context, int64) (int64, error) { return a.id, a.err }

// An assigned worker ID is awaited. A time further off than any lease is an error of its own.
func TestAssigned(t *testing.T) {
	const horizon = time.Hour
	a := assigner{&scripted{}, 5, nil}
	k := (&stillClock{wall: now}).keeper(t, a, Options{Horizon: horizon})
	for until, want := range map[time.Duration]error{-1: nil, 0: nil, 1: ErrWaiting, 2 * horizon: ErrWaiting, 2*horizon + 1: ErrFarAhead} {
		v := view{records: map[int64]Record{5: {Worker: 5, Horizon: now.Add(until)}}}
		ids, err := k.candidates(t.Context(), v, now)
		early, ok := errors.AsType[*notYet](err)
		switch {
		case want == nil && (err != nil || !slices.Equal(ids, []int64{5})):
			t.Errorf("%v: %v, %v", until, ids, err)
		case want != nil && (!errors.Is(err, want) || !ok || !early.at.Equal(now.Add(until)) || !strings.Contains(err.Error(), "an unknown node")):
			t.Errorf("%v: %v", until, err)
		}
	}
	a.err = errDown
	k.reg = a
	if _, err := k.candidates(t.Context(), view{}, now); !errors.Is(err, errDown) {
		t.Errorf("got %v", err)
	}
}

// The pause before the next attempt grows, except where somebody has to act, or a time is known.
func TestRetryPause(t *testing.T) {
	k := stillKeeper(t, Options{})
	full := func(d time.Duration) error { return &notYet{now.Add(d), ErrNoneFree} }
	for _, tt := range []struct {
		name        string
		err         error
		saved       bool
		least, most time.Duration
	}{
		{"a fault", errDown, false, 500 * time.Millisecond, time.Second},
		{"not created", ErrNotCreated, false, queuePause, queuePause},
		{"full for a while", full(3 * time.Second), false, 3 * time.Second, 3*time.Second + minPause},
		{"full for long", full(time.Hour), false, queuePause, queuePause + minPause},
		{"full no more", full(-time.Hour), false, time.Second, time.Second + minPause},
		{"full, with one to hand back", full(time.Hour), true, 500 * time.Millisecond, time.Second},
	} {
		k.saved = nil
		if tt.saved {
			k.saved = &savedLease{}
		}
		least, most := time.Hour, time.Duration(0)
		for range 200 {
			pause := k.retryPause(tt.err, time.Second)
			least, most = min(least, pause), max(most, pause)
		}
		if least < tt.least || most > tt.most || tt.most > tt.least && most-least < (tt.most-tt.least)/2 {
			t.Errorf("%s: %v to %v, want %v to %v", tt.name, least, most, tt.least, tt.most)
		}
	}
}

// A fault is logged when it is new: its text differs, and a minute has passed or the worker ID is
// lost.
func TestLogThrottle(t *testing.T) {
	var l logThrottle
	lost := func(text string) error { return errors.Join(ErrTaken, errors.New(text)) }
	for i, tt := range []struct {
		err   error
		after time.Duration
		logs  bool
	}{
		{errDown, 0, true}, {errDown, time.Second, false}, {io.EOF, tellAgain - 1, false}, {errDown, 3 * tellAgain, false},
		{io.EOF, 4 * tellAgain, true}, {errDown, 5*tellAgain - 1, false}, {errDown, 5 * tellAgain, true},
		{lost("a"), 5*tellAgain + 1, true}, {lost("a"), 7 * tellAgain, false}, {lost("b"), 7 * tellAgain, true}, {errDown, 7*tellAgain + 1, false},
	} {
		if got := l.worth(tt.err, tt.after); got != tt.logs {
			t.Errorf("line %d: %v", i, got)
		}
	}
}

// Calls of the registry say what kind of error ended them.
func TestAskErrors(t *testing.T) {
	k := stillKeeper(t, Options{CallTimeout: time.Minute})
	call := func(ctx context.Context, err error) error {
		_, got := ask(ctx, k, func(context.Context) (int, error) { return 0, err })
		return got
	}
	ctx, cancel := context.WithCancel(t.Context())
	for _, err := range []error{ErrTaken, ErrWaiting, leaf.ErrClock} {
		if got := call(ctx, err); !reflect.DeepEqual(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if got := call(ctx, errDown); !errors.Is(got, errDown) || !errors.As(got, new(*leaf.StoreError)) {
		t.Errorf("got %v", got)
	}
	if got := call(ctx, nil); got != nil {
		t.Errorf("got %v", got)
	}
	if got := call(ctx, context.DeadlineExceeded); got.Error() != "no answer within 1m0s" || !errors.Is(got, context.DeadlineExceeded) {
		t.Errorf("got %v", got)
	}
	cancel()
	if got := call(ctx, context.DeadlineExceeded); !errors.As(got, new(*leaf.StoreError)) {
		t.Errorf("the caller's time limit: %v", got)
	}
}

// Only a registry without a server leaves a worker ID to processes that it knows nothing of, and only
// if it chooses the worker ID.
func TestSharesMachine(t *testing.T) {
	for _, tt := range []struct {
		reg       Registry
		lock, own bool
		want      bool
	}{
		{&scripted{}, true, true, true}, {&scripted{}, true, false, false}, {&scripted{}, false, true, false}, {assigner{}, true, true, false},
	} {
		k := stillKeeper(t, Options{})
		if k.reg = tt.reg; tt.lock {
			k.opts.Lock = only(0)
		}
		if got := k.sharesMachine(tt.own); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
