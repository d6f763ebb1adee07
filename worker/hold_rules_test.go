package worker

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A watched registry tells of writes by others. Its first watches fail with errs.
type watched struct {
	*scripted
	errs   []error
	writes chan struct{}
}

func (r *watched) Watch(context.Context, int64) (<-chan struct{}, error) {
	if r.writes == nil {
		r.writes = make(chan struct{}, 1)
	}
	if len(r.errs) == 0 {
		return r.writes, nil
	}
	err := r.errs[0]
	r.errs = r.errs[1:]
	return nil, err
}

// claimed returns a confirmed lease of a registry.
func claimed(t *testing.T, reg Registry, opts Options) *heldLease {
	t.Helper()
	opts.Layouts = bits(2)
	k, err := NewKeeper(reg, &opts)
	if err != nil {
		t.Fatal(err)
	}
	h, err := k.begin(t.Context())
	if err == nil {
		err = h.confirm(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// holdInBubble holds a lease of a registry during a test.
func holdInBubble(t *testing.T, reg Registry, opts Options, test func(h *heldLease, lost <-chan error)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := claimed(t, reg, opts)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		lost := make(chan error, 1)
		go func() { lost <- h.hold(ctx) }()
		synctest.Wait()
		test(h, lost)
	})
}

// A holder extends its lease at its pace, sooner after a failure and after a start from the file, and
// at once where the lease is short.
func TestPaceOfExtensions(t *testing.T) {
	const extend = 20 * time.Second
	for _, tt := range []struct {
		name            string
		fails           int // of the first extensions
		fromFile, short bool
		want            []time.Duration // since the beginning
	}{
		{"steady", 0, false, false, []time.Duration{extend, 2 * extend, 3 * extend}},
		{"two failures", 2, false, false, []time.Duration{extend, extend * 5 / 4, extend * 6 / 4, extend * 10 / 4}},
		{"from the file", 0, true, false, []time.Duration{extend / 4, extend * 5 / 4, extend * 9 / 4}},
		{"short", 0, false, true, []time.Duration{0, extend, 2 * extend, 3 * extend}},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &scripted{}
			reg := epochs{r, ServerEpoch{Lossy: tt.short, Incarnation: "a"}, nil}
			h := claimed(t, reg, Options{Extend: extend})
			h.fromFile = tt.fromFile
			var got []time.Duration
			begin := time.Now()
			r.swap = func(_, _ Record) error {
				got = append(got, time.Since(begin))
				if r.load = nil; len(got) <= tt.fails {
					r.load = func() error { return errDown }
					return errDown
				}
				return nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*extend+time.Second)
			defer cancel()
			if err := h.hold(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", tt.name, err)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("%s: extended at %v, want %v", tt.name, got, tt.want)
			}
		})
	}
}

// A foreign write that a watch reports is looked at, at once. A failed watch begins again with an
// extension.
func TestWatch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		errs  []error
		after time.Duration // of the write
		lost  bool
	}{
		{"at once", nil, time.Second, true},
		{"not watched yet", []error{errDown}, time.Second, false},
		{"watched since the first extension", []error{errDown}, 11 * time.Second, true},
		{"the registry says so itself", []error{ErrTaken}, time.Second, true},
	} {
		r := &watched{scripted: &scripted{}, errs: tt.errs}
		holdInBubble(t, r, Options{Extend: 10 * time.Second}, func(h *heldLease, lost <-chan error) {
			time.Sleep(tt.after)
			synctest.Wait()
			swaps := r.swaps()
			r.writes <- struct{}{}
			time.Sleep(2 * watchPause)
			synctest.Wait()
			if r.swaps() > swaps {
				t.Errorf("%s: extended, and nothing had been written", tt.name)
			}
			r.put(Record{Worker: h.lease.Worker(), Instance: Instance{9}, Term: 9, Horizon: time.Now()})
			select {
			case r.writes <- struct{}{}:
			default: // nobody has noticed the first
			}
			time.Sleep(5 * watchPause)
			select {
			case err := <-lost:
				if !errors.Is(err, ErrTaken) || !tt.lost {
					t.Errorf("%s: lost by %v", tt.name, err)
				}
			default:
				if tt.lost {
					t.Errorf("%s: not noticed", tt.name)
				}
			}
		})
	}
}

// The log warns of IDs that may exist twice where another node claimed the worker ID too early, and
// of nothing else.
func TestLossIsLogged(t *testing.T) {
	for name, tt := range map[string]struct {
		found func(Record) Record
		warns bool
	}{
		"another node": {func(r Record) Record { r.Instance = Instance{9}; r.Term++; return r }, true},
		"freed":        {func(r Record) Record { r.Instance = Instance{}; r.Term++; return r }, false},
	} {
		var log strings.Builder
		r := &scripted{}
		holdInBubble(t, r, Options{Extend: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}, func(h *heldLease, lost <-chan error) {
			r.put(tt.found(h.record))
			if err := <-lost; !errors.Is(err, ErrTaken) || h.Status().Lost != 1 {
				t.Errorf("%s: %v", name, err)
			}
		})
		if got := strings.Contains(log.String(), "IDs of these times may exist twice"); got != tt.warns {
			t.Errorf("%s: logged %s", name, log.String())
		}
	}
}

// A countedFile counts its syncs, and may be broken.
type countedFile struct {
	memoryFile
	broken atomic.Bool
	syncs  atomic.Int64
}

func (f *countedFile) Sync() error {
	if f.syncs.Add(1); f.broken.Load() {
		return errDown
	}
	return nil
}

// A broken disk is tried again every two seconds at most, without anybody's call.
func TestBrokenDiskIsTriedAgain(t *testing.T) {
	f := &countedFile{}
	holdInBubble(t, &scripted{}, Options{Extend: 20 * time.Minute, State: NewStateFile(f, "id")}, func(h *heldLease, _ <-chan error) {
		f.broken.Store(true)
		h.lease.Need(time.Now().Add(time.Hour))
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if s := h.Status(); !errors.Is(s.Err, errDown) {
			t.Errorf("the status says %v", s.Err)
		}
		f.broken.Store(false)
		limit := h.lease.Limit()
		time.Sleep(maxPause + time.Second)
		if s := h.Status(); s.Err != nil || !h.lease.Limit().After(limit) {
			t.Errorf("the disk works, and the status says %v", s.Err)
		}
	})
}

// Callers who keep asking have the file written five times a second, and not at all once the mark is
// at the horizon.
func TestFileIsWrittenSparingly(t *testing.T) {
	for horizon, most := range map[time.Duration]int64{time.Hour: 6, 2 * time.Second: 0} {
		f := &countedFile{}
		holdInBubble(t, &scripted{}, Options{Horizon: horizon, Extend: 20 * time.Minute, State: NewStateFile(f, "id")}, func(h *heldLease, _ <-chan error) {
			time.Sleep(time.Second)
			synctest.Wait()
			before := f.syncs.Load()
			for range 1000 {
				h.lease.Need(time.Now().Add(time.Hour))
				time.Sleep(time.Millisecond)
			}
			synctest.Wait()
			if got := f.syncs.Load() - before; got > most || most > 0 && got < most-2 {
				t.Errorf("with a horizon of %v: written %d times, want %d", horizon, got, most)
			}
		})
	}
}

// An extension whose lease is over writes nothing, or does not count.
func TestExtendAfterTheEnd(t *testing.T) {
	lossy := ServerEpoch{Lossy: true, Incarnation: "a"}
	for _, tt := range []struct {
		name   string
		wall   time.Duration // after the horizon
		answer bool          // of the first swap
		swaps  int
	}{
		{"over", DefaultTolerance, true, 0},
		{"over meanwhile", -time.Second, true, 1},
		{"over meanwhile, by the second swap", -time.Second, false, 2},
	} {
		c, r := &stillClock{wall: mine.Horizon.Add(tt.wall)}, &scripted{}
		h := c.holding(t, r, Options{})
		h.reg = epochs{r, lossy, nil}
		h.record.Incarnation = "a"
		r.put(h.record)
		r.swap = func(_, _ Record) error {
			c.tick(2 * time.Second) // which ends the lease
			if !tt.answer && len(r.swapped) == 1 {
				return errDown
			}
			return nil
		}
		if err := h.extend(t.Context()); !errors.Is(err, ErrTaken) || len(r.swapped) != tt.swaps {
			t.Errorf("%s: %v after %d swaps", tt.name, err, len(r.swapped))
		}
		if !h.horizon.load().Equal(mine.Horizon) {
			t.Errorf("%s: the generators have %v more", tt.name, h.horizon.load().Sub(mine.Horizon))
		}
	}
	h := (&stillClock{wall: now}).holding(t, &scripted{}, Options{})
	h.reg = timeless{&scripted{}}
	if err := h.extend(t.Context()); !errors.Is(err, errDown) {
		t.Errorf("without the time: %v", err)
	}
}

// Another server may take over amid an extension: the time may be its own, and the answer.
func TestAnotherServerAnswers(t *testing.T) {
	for _, taken := range []bool{false, true} {
		r := &scripted{}
		h := (&stillClock{wall: mine.Horizon.Add(-time.Second)}).holding(t, r, Options{})
		server := "a"
		h.reg = asking{r, func() (ServerEpoch, error) { return ServerEpoch{Lossy: true, Incarnation: server}, nil }}
		h.record.Incarnation = server
		r.put(h.record)
		r.swap = func(_, _ Record) error {
			if taken {
				server = "b"
			}
			return nil
		}
		if err := h.extend(t.Context()); errors.Is(err, ErrTaken) != taken || h.horizon.load().After(mine.Horizon) == taken || len(r.swapped) != 1 {
			t.Errorf("another server: %v; %v after %d swaps, until %v", taken, err, len(r.swapped), h.horizon.load())
		}
	}
}

// A process may be paused between the registry's answer with its time and the arrival of that: the time is
// at most so much later.
func TestPauseWithinTheQuestion(t *testing.T) {
	for _, pause := range []time.Duration{time.Second, 15 * time.Second} {
		c := &stillClock{wall: mine.Horizon.Add(-10 * time.Second)}
		r := &scripted{}
		h := c.holding(t, r, Options{})
		h.record.Incarnation = "a"
		r.put(h.record)
		h.reg = timed{asking{r, func() (ServerEpoch, error) { return ServerEpoch{Lossy: true, Incarnation: "a"}, nil }}, func() time.Time {
			defer func() { c.wall, c.mono = c.wall.Add(pause), c.mono+pause }()
			return c.wall
		}}
		over := pause > 10*time.Second
		if err := h.extend(t.Context()); errors.Is(err, ErrTaken) != over || len(r.swapped) == 1 == over {
			t.Errorf("a pause of %v: %v, %d swaps", pause, err, len(r.swapped))
		}
	}
}

// A timed registry has a clock.
type timed struct {
	asking
	clock func() time.Time
}

func (r timed) Clock(context.Context) (time.Time, error) { return r.clock(), nil }

// The generators' horizon only grows.
func TestAdoptOnlyGrows(t *testing.T) {
	h := (&stillClock{wall: now}).holding(t, &scripted{}, Options{})
	h.fromFile = true
	h.horizon.store(now.Add(time.Hour))
	next := mine
	next.Owner = "n"
	if err := h.adopt(t.Context(), view{registry: now}, next); err != nil || !h.horizon.load().Equal(now.Add(time.Hour)) || len(h.extended) > 0 || h.record.Owner != "n" || h.fromFile {
		t.Errorf("%v, %+v", err, h)
	}
}

// A stop hands back above all IDs, or says why not. It waits for no clock if no ID was issued.
func TestEnd(t *testing.T) {
	for _, tt := range []struct {
		name          string
		file          bool
		disk, load    error
		floor, issued time.Duration // after now
		held          bool          // afterwards
		ended         bool          // in the file
		horizon, took time.Duration
	}{
		{"used", true, nil, nil, -time.Minute, time.Second, false, true, time.Second, time.Second},
		{"unused", true, nil, nil, time.Second, 0, false, true, time.Second, 0},
		{"without a file", false, nil, errDown, -time.Minute, time.Second, false, false, time.Second, time.Second},
		{"unreadable", true, nil, errDown, -time.Minute, time.Second, true, false, time.Minute, time.Second},
		{"a broken disk", true, errDown, nil, -time.Minute, time.Second, true, false, time.Minute, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, r := &memoryFile{}, &scripted{}
			user := &issued{}
			opts := Options{Settle: true, LeaseUsers: []LeaseUser{user}}
			if tt.file {
				opts.State = NewStateFile(f, "id")
			}
			h := (&stillClock{wall: now}).holding(t, r, opts)
			h.lease.floor = now.Add(tt.floor).UnixMilli()
			if tt.issued > 0 {
				user.until = now.Add(tt.issued)
			}
			if err := h.save(); err != nil {
				t.Fatal(err)
			}
			f.err, r.load = tt.disk, func() error { return tt.load }
			begin := time.Now()
			err := h.end()
			if took := time.Since(begin); took != tt.took || (err != nil) != tt.held {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
			if got := r.records[3]; got.Held() != tt.held || got.Horizon.Sub(now) != tt.horizon {
				t.Errorf("%s: the record is %+v", tt.name, got)
			}
			if f.err = nil; tt.file {
				if l := f.lease(t); l.Ended != tt.ended || tt.ended && l.Mark.Sub(now) != tt.horizon {
					t.Errorf("%s: the file has %+v", tt.name, l)
				}
			}
		})
	}
}

// An issued is a user with IDs before a time; the zero Time: none.
type issued struct{ until time.Time }

func (*issued) Begin(*Lease)           {}
func (u *issued) Seal(error) time.Time { return u.until }
