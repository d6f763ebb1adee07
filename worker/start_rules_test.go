package worker

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// rival is a swap of a scripted registry: another node is faster.
func (r *scripted) rival(old, _ Record) error {
	r.put(Record{Worker: old.Worker, Instance: Instance{2}, Term: old.Term + 1, Horizon: now.Add(time.Hour)})
	return ErrConflict
}

// bits are layouts with so many worker bits.
func bits(n int) []ServedLayout { return []ServedLayout{{Name: "a", Tick: 1, WorkerBits: n}} }

// only has a machine's other processes use all worker IDs but one.
func only(worker int64) func(ServedLayout, int64) (io.Closer, error) {
	return func(_ ServedLayout, id int64) (io.Closer, error) {
		if id != worker {
			return nil, ErrInUse
		}
		return io.NopCloser(nil), nil
	}
}

// A claim tries several worker IDs, where other nodes are faster or other processes of this machine
// use them.
func TestClaimTries(t *testing.T) {
	const faster = "other nodes were faster"
	for _, tt := range []struct {
		name   string
		opts   Options
		rivals bool
		worker int64
		swaps  int
		err    string
	}{
		{"the first", Options{Layouts: bits(5)}, false, 0, 1, ""},
		{"rivals everywhere", Options{Layouts: bits(5)}, true, 0, maxRivals, faster},
		{"all but one are in use", Options{Layouts: bits(5), Lock: only(7)}, false, 7, 1, ""},
		{"all are in use", Options{Layouts: bits(5), Lock: only(99)}, false, 0, 0, ErrInUse.Error()},
		{"a rival, and the others are in use", Options{Layouts: bits(5), Lock: only(0)}, true, 0, 1, faster},
		{"the file cannot be written", Options{Layouts: bits(5), State: NewStateFile(&memoryFile{err: errDown}, "id")}, false, 0, 0, errDown.Error()},
	} {
		r := &scripted{}
		if tt.rivals {
			r.swap = r.rival
		}
		k := (&stillClock{wall: now}).keeper(t, r, tt.opts)
		h, err := k.claim(t.Context(), view{registry: now})
		if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) || len(r.swapped) != tt.swaps {
			t.Errorf("%s: %v after %d swaps", tt.name, err, len(r.swapped))
		}
		if err == nil && h.record.Worker != tt.worker {
			t.Errorf("%s: worker ID %d", tt.name, h.record.Worker)
		}
	}
}

// The file has a claim before the registry does. The lease begins at the horizon of the record before.
func TestClaimIsAnnounced(t *testing.T) {
	f := &memoryFile{}
	r := &scripted{}
	r.swap = func(_, next Record) error {
		l := f.lease(t)
		if !l.Ended || l.Worker != 7 || l.Instance != next.Instance || l.Term != 3 || !l.Horizon.Equal(next.Horizon) || !l.Mark.Equal(now.Add(-time.Second)) || !slices.Equal(l.Layouts, bits(5)) {
			t.Errorf("the file has %+v", l)
		}
		return nil
	}
	old := Record{Worker: 7, Term: 2, Horizon: now.Add(-time.Second), Seen: now.Add(-time.Hour)}
	r.put(old)
	k := (&stillClock{wall: now.Add(time.Microsecond)}).keeper(t, r, Options{Layouts: bits(5), State: NewStateFile(f, "id"), Lock: only(7), Horizon: time.Minute})
	h, err := k.claim(t.Context(), view{registry: now, records: maps.Clone(r.records)})
	if err != nil {
		t.Fatal(err)
	}
	if h.lease.Worker() != 7 || !h.lease.Floor().Equal(old.Horizon) || !h.mark.Equal(old.Horizon) || !h.prior.Equal(old) || !h.record.Horizon.Equal(now.Add(time.Minute)) ||
		!h.horizon.load().Equal(h.record.Horizon) || !h.losses.safe.load().time.Equal(h.record.Horizon) || h.fromFile {
		t.Errorf("got %+v", h)
	}
}

// A clock so far ahead of the registry's that no other node could follow claims nothing.
func TestClaimReaches(t *testing.T) {
	for behind, ok := range map[time.Duration]bool{time.Hour: true, time.Hour + time.Millisecond: false} {
		k := (&stillClock{wall: now}).keeper(t, &scripted{}, Options{Horizon: time.Hour})
		if _, err := k.claim(t.Context(), view{registry: now.Add(-behind)}); (err == nil) != ok || err != nil && !errors.Is(err, ErrClockOff) {
			t.Errorf("a registry %v behind: %v", behind, err)
		}
	}
}

// A dealing registry deals worker ID 5.
type dealing struct {
	*scripted
	discarded *[]int64
}

func (dealing) Assign(context.Context, int64) (int64, error) { return 5, nil }
func (d dealing) Discard(id int64)                           { *d.discarded = append(*d.discarded, id) }
func (dealing) Starts(context.Context, int) ([]Start, error) { return nil, nil }
func (dealing) Supply() Supply                               { return Supply{} }

// A dealt worker ID that another process of this machine uses is given up.
func TestDiscard(t *testing.T) {
	for used, want := range map[int64][]int64{5: nil, 6: {5}} {
		var discarded []int64
		k := (&stillClock{wall: now}).keeper(t, dealing{&scripted{}, &discarded}, Options{Lock: only(used), Layouts: bits(5)})
		if _, err := k.claim(t.Context(), view{registry: now}); errors.Is(err, ErrInUse) != (want != nil) || !slices.Equal(discarded, want) {
			t.Errorf("gave up %v, %v", discarded, err)
		}
	}
	if left := (Supply{Used: 3, Max: 10}).Left(); left != 7 {
		t.Errorf("%d starts are left", left)
	}
}

// A bid of unknown outcome comes first: it may have won, or not have arrived.
func TestPendingBid(t *testing.T) {
	next := Record{Worker: 3, Instance: Instance{1}, Term: 1, Horizon: now.Add(time.Hour)}
	for _, tt := range []struct {
		name   string
		lock   func(ServedLayout, int64) (io.Closer, error)
		found  Record
		swap   string // "": works
		worker int64
		mine   bool // the instance is the pending bid's
		swaps  int
		err    error
	}{
		{"it has won", nil, next, "", 3, true, 1, nil},
		{"it has won, and another process uses the worker ID", only(0), next, "", 0, false, 1, nil},
		{"it has won, no answer", nil, next, "down", 3, true, 1, errDown},
		{"it has not arrived", nil, Record{Worker: 3}, "", 3, true, 1, nil},
		{"rivals everywhere", nil, Record{Worker: 3}, "rival", 3, true, 4, nil},
		{"another has won", nil, Record{Worker: 3, Term: 1, Instance: Instance{2}, Horizon: now.Add(time.Hour)}, "", 0, false, 1, nil},
	} {
		r := &scripted{}
		r.put(tt.found)
		switch tt.swap {
		case "down":
			r.swap = func(_, _ Record) error { return errDown }
		case "rival":
			r.swap = r.rival
		}
		k := (&stillClock{wall: now}).keeper(t, r, Options{Layouts: bits(2), Horizon: time.Hour, Lock: tt.lock})
		pending := bid{Record{Worker: 3}, next}
		k.pending = &pending
		h, err := k.claim(t.Context(), view{registry: now, records: maps.Clone(r.records)})
		if len(r.swapped) != tt.swaps || (err == nil) != (tt.err == nil && tt.swap != "rival") || tt.err != nil && !errors.Is(err, tt.err) {
			t.Errorf("%s: %v after %d swaps", tt.name, err, len(r.swapped))
			continue
		}
		if first := r.swapped[0][1]; first.Worker != tt.worker || (first.Instance == next.Instance) != tt.mine {
			t.Errorf("%s: swapped %+v", tt.name, first)
		}
		if err == nil && (h.record.Worker != tt.worker || (h.record.Instance == next.Instance) != tt.mine) {
			t.Errorf("%s: got %+v", tt.name, h.record)
		}
		if (tt.err != nil) != (k.pending != nil) {
			t.Errorf("%s: pending %+v", tt.name, k.pending)
		}
	}
}

// A start claims nothing while a check fails.
func TestBegin(t *testing.T) {
	lossy := ServerEpoch{Lossy: true, Incarnation: "a"}
	short := Record{Worker: 2, ClaimDelay: time.Second}
	for _, tt := range []struct {
		name  string
		reg   func(r *scripted) Registry
		disk  error
		other Record
		want  error
	}{
		{"all is well", func(r *scripted) Registry { return r }, nil, Record{Worker: 2}, nil},
		{"no answer", func(r *scripted) Registry { r.list = func() error { return errDown }; return r }, nil, Record{Worker: 2}, errDown},
		{"a wrong clock", func(r *scripted) Registry { r.clock = now.Add(time.Hour); return r }, nil, Record{Worker: 2}, ErrClockOff},
		{"other layouts", func(r *scripted) Registry { return r }, nil, Record{Worker: 2, Layouts: bits(3)}, &LayoutError{}},
		{"a short claim delay", func(r *scripted) Registry { return epochs{r, lossy, nil} }, nil, short, ErrClaimDelay},
		{"a broken disk", func(r *scripted) Registry { return r }, errDown, Record{Worker: 2}, errDown},
	} {
		r := &scripted{}
		k := (&stillClock{wall: now}).keeper(t, tt.reg(r), Options{Layouts: bits(2)})
		r.put(Record{Worker: 3, Instance: mine.Instance, Term: 5, Horizon: mine.Horizon})
		r.put(tt.other)
		k.opts.State = NewStateFile(&memoryFile{err: tt.disk}, "id")
		k.saved = &savedLease{Identity: "id", Worker: 3, Instance: mine.Instance, Term: 5, Horizon: milliTime{mine.Horizon}, Mark: milliTime{now}}
		h, err := k.begin(t.Context())
		if _, refused := tt.want.(*LayoutError); refused {
			tt.want = nil
			if !errors.As(err, new(*LayoutError)) {
				t.Errorf("%s: %v", tt.name, err)
			}
		} else if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if held := h != nil; held != (err == nil) || held && h.record.Worker != 0 {
			t.Errorf("%s: holds %+v", tt.name, h)
		}
	}
}

// The lease in the file is handed back, once the file says that it has ended.
func TestHandBack(t *testing.T) {
	rival := Record{Worker: 3, Instance: Instance{2}, Term: 6, Horizon: now.Add(time.Hour)}
	for _, tt := range []struct {
		name       string
		found      Record
		ended      bool // the file says so already
		swap, disk error
		err        error
		swaps      int
		kept       bool // it is tried again
		putBacks   int64
	}{
		{"held", mine, false, nil, nil, nil, 1, false, 0},
		{"ended", mine, true, nil, errDown, nil, 1, false, 0},
		{"the disk is broken", mine, false, nil, errDown, errDown, 0, true, 0},
		{"no answer", mine, false, errDown, nil, nil, 1, true, 0},
		{"lost", before, false, nil, nil, nil, 1, false, 1},
		{"another one's", rival, false, nil, nil, nil, 0, false, 0},
	} {
		f, r := &memoryFile{err: tt.disk}, &scripted{}
		r.put(tt.found)
		r.swap = func(_, _ Record) error {
			if !tt.ended && !f.lease(t).Ended {
				t.Errorf("%s: the file says nothing yet", tt.name)
			}
			return tt.swap
		}
		k := (&stillClock{wall: now}).keeper(t, r, Options{State: NewStateFile(f, "id"), Owner: "n"})
		k.saved = &savedLease{Identity: "id", Worker: 3, Instance: mine.Instance, Term: 5, Horizon: milliTime{mine.Horizon}, Mark: milliTime{now}, Ended: tt.ended}
		v := view{registry: now, records: maps.Clone(r.records)}
		if err := k.handBack(t.Context(), v); !errors.Is(err, tt.err) || len(r.swapped) != tt.swaps || (k.saved != nil) != tt.kept {
			t.Errorf("%s: %v after %d swaps, kept: %v", tt.name, err, len(r.swapped), k.saved != nil)
		}
		if got := k.Status().PutBacks; got != tt.putBacks {
			t.Errorf("%s: put back %d times", tt.name, got)
		}
		released := tt.swaps == 1 && tt.swap == nil
		if got := v.records[3]; released && (got.Held() || !got.Horizon.Equal(now) || got.Term != 5 || got.Owner != "n") || !released && !got.Equal(tt.found) {
			t.Errorf("%s: the view has %+v", tt.name, got)
		}
		if tt.name == "no answer" && !k.saved.Ended {
			t.Error("the file would be written again")
		}
	}
}

// Without the registry a start continues the lease in the file, if certainly no other process does
// and times are left.
func TestResume(t *testing.T) {
	lease := savedLease{Incarnation: "a", Identity: "id", Worker: 3, Instance: Instance{1}, Term: 5, Horizon: milliTime{now.Add(time.Minute)}, Safe: milliTime{now.Add(time.Hour)}, Mark: milliTime{now.Add(time.Second)}, Layouts: bits(2)}
	for _, tt := range []struct {
		name   string
		change func(l *savedLease)
		lock   func(ServedLayout, int64) (io.Closer, error)
		limit  time.Duration // 0: it does not continue
	}{
		{"its own", func(*savedLease) {}, nil, time.Minute},
		{"safe for less", func(l *savedLease) { l.Safe.Time = now.Add(time.Second + time.Millisecond) }, nil, time.Second + time.Millisecond},
		{"up to its mark", func(l *savedLease) { l.Safe = l.Mark }, nil, 0},
		{"up to now", func(l *savedLease) { l.Mark.Time, l.Safe.Time = now.Add(-time.Hour), now }, nil, 0},
		{"ended", func(l *savedLease) { l.Ended = true }, nil, 0},
		{"lost by this process", func(l *savedLease) { l.sealed = true }, nil, 0},
		{"another file's", func(l *savedLease) { l.Identity = "x" }, nil, 0},
		{"too large", func(l *savedLease) { l.Worker = 4 }, nil, 0},
		{"other layouts", func(l *savedLease) { l.Layouts = nil }, nil, 0},
		{"another process uses it", func(*savedLease) {}, only(0), 0},
	} {
		k := (&stillClock{wall: now}).keeper(t, nil, Options{Layouts: bits(2), Lock: tt.lock})
		k.opts.State = NewStateFile(nil, "id")
		l := lease
		tt.change(&l)
		k.saved = &l
		h := k.resume()
		if h == nil {
			if tt.limit > 0 || k.saved == nil {
				t.Errorf("%s: it does not continue, kept: %v", tt.name, k.saved != nil)
			}
			continue
		}
		want := Record{Worker: 3, Instance: Instance{1}, Term: 5, Horizon: lease.Horizon.Time, Layouts: bits(2), Incarnation: "a"}
		if got := h.horizon.load().Sub(now); got != tt.limit || !h.losses.safe.load().time.Equal(h.horizon.load()) || !h.losses.short || !h.fromFile || h.prior != nil || k.saved != nil ||
			!h.record.Equal(want) || !h.lease.Floor().Equal(l.Mark.Time) {
			t.Errorf("%s: for %v, %+v", tt.name, got, h)
		}
	}
	k := (&stillClock{wall: now}).keeper(t, nil, Options{})
	if k.resume() != nil {
		t.Error("continued nothing")
	}
}
