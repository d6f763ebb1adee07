package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// mine is the record of the lease that tests hold.
var mine = Record{Worker: 3, Instance: Instance{1}, Term: 5, Horizon: now.Add(time.Minute), Layouts: []ServedLayout{{Name: "a"}}, Version: "1"}

// before is the record before the claim.
var before = Record{Worker: 3, Term: 4, Horizon: now.Add(-time.Minute)}

// holding returns a held lease on a scripted registry.
func (c *stillClock) holding(t testing.TB, r *scripted, opts Options) *heldLease {
	r.put(mine)
	k := c.keeper(t, r, opts)
	h := k.newHeldLease(mine, new(before), before.Horizon)
	h.recordStart()
	return h
}

// A record shows another holder if it is neither ours nor one from before our claim.
func TestTaken(t *testing.T) {
	for _, tt := range []struct {
		name  string
		found Record
		prior bool // the record before the claim is known
		taken bool
	}{
		{"ours", mine, true, false},
		{"another instance", Record{Term: 5, Instance: Instance{2}}, true, true},
		{"a later term", Record{Term: 6}, true, true},
		{"the one before", before, true, false},
		{"an older one", Record{Term: 1}, true, false},
		{"one that was extended since", Record{Term: 4, Horizon: before.Horizon.Add(1)}, true, true},
		{"the one before, of a lease from the file", before, false, true},
	} {
		h := (&stillClock{wall: now}).holding(t, &scripted{}, Options{})
		if !tt.prior {
			h.prior = nil
		}
		if got := h.taken(tt.found); got != tt.taken {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// An extension reaches one horizon beyond this clock and at most two beyond the registry's, or as far
// as the claim did and the time since.
func TestReach(t *testing.T) {
	const horizon = 10 * time.Minute
	for _, tt := range []struct {
		name                        string
		wall, registry, since, want time.Duration
	}{
		{"equal clocks", 0, 0, 0, horizon},
		{"whole milliseconds", time.Microsecond, 0, 0, horizon},
		{"the registry's is behind", 0, -time.Hour, 0, time.Minute},
		{"and time has passed", 0, -time.Hour, time.Minute, 2 * time.Minute},
		{"this one is far ahead", time.Hour, 0, 0, 2 * horizon},
	} {
		c := &stillClock{wall: now.Add(tt.wall - tt.since), mono: time.Hour}
		h := c.holding(t, &scripted{}, Options{Horizon: horizon})
		c.mono += tt.since
		if got := h.reach(now.Add(tt.registry)).Sub(now); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// What becomes of a lease when its extension fails, by the next read and the next swap.
func TestExtendFails(t *testing.T) {
	const horizon = 10 * time.Minute
	later := mine
	later.Version, later.Horizon = "2", now.Add(time.Hour)
	rival := Record{Worker: 3, Instance: Instance{2}, Term: 6, Horizon: now.Add(time.Hour), Owner: "r"}
	freed := Record{Worker: 3, Term: 6, Horizon: now}
	earlierOne := mine
	earlierOne.Horizon = now
	for _, tt := range []struct {
		name            string
		swap            error
		found           Record
		load, again     error
		want            error
		replaced        bool
		putBacks, swaps int
		horizon         time.Duration // of the record afterwards
	}{
		{"it works", nil, mine, nil, nil, nil, false, 0, 1, horizon},
		{"the registry noticed another", ErrTaken, mine, nil, nil, ErrTaken, false, 0, 1, time.Minute},
		{"no answer, and none to the read", errDown, mine, io.EOF, nil, io.EOF, false, 0, 1, time.Minute},
		{"no answer, not written", errDown, mine, nil, nil, nil, false, 0, 2, horizon},
		{"no answer, written", errDown, later, nil, nil, nil, false, 0, 2, time.Hour + time.Millisecond},
		{"no answer twice", errDown, mine, nil, io.EOF, io.EOF, false, 0, 2, time.Minute},
		{"conflict with another", ErrConflict, rival, nil, nil, ErrTaken, true, 0, 1, time.Minute},
		{"freed", ErrConflict, freed, nil, nil, ErrTaken, false, 0, 1, time.Minute},
		{"lost, with the claim", ErrConflict, before, nil, nil, nil, false, 1, 2, horizon},
		{"lost, with an extension", ErrConflict, earlierOne, nil, nil, nil, false, 1, 2, horizon},
	} {
		r := &scripted{load: func() error { return tt.load }}
		h := (&stillClock{wall: now}).holding(t, r, Options{Horizon: horizon})
		errs := []error{tt.swap, tt.again}
		r.swap = func(_, _ Record) error {
			if len(errs) == 2 {
				r.put(tt.found)
			}
			err := errs[0]
			errs = errs[1:]
			return err
		}
		err := h.extend(t.Context())
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || errors.Is(err, errReplaced) != tt.replaced {
			t.Errorf("%s: %v", tt.name, err)
		}
		if err != nil && !errors.Is(err, ErrTaken) && !errors.Is(err, tt.swap) {
			t.Errorf("%s: the cause is missing: %v", tt.name, err)
		}
		if got := h.Status().PutBacks; got != int64(tt.putBacks) || len(r.swapped) != tt.swaps {
			t.Errorf("%s: put back %d times, %d swaps", tt.name, got, len(r.swapped))
		}
		if got := h.record.Horizon.Sub(now); got != tt.horizon || h.horizon.load().Sub(now) != got || len(h.extended) > 0 != (err == nil) {
			t.Errorf("%s: the horizon is %v, the generators' %v", tt.name, got, h.horizon.load().Sub(now))
		}
	}
}

func (c *stillClock) tick(d time.Duration) { c.wall, c.mono = c.wall.Add(d), c.mono+d }

// A record put back has the layouts and the claim delay of both.
func TestPutBackKeepsOthersFields(t *testing.T) {
	r := &scripted{}
	h := (&stillClock{wall: now}).holding(t, r, Options{})
	found := before
	found.Layouts, found.ClaimDelay = []ServedLayout{{Name: "b"}}, time.Hour
	swaps := 0
	r.swap = func(_, _ Record) error {
		if swaps++; swaps == 1 {
			r.put(found)
			return ErrConflict
		}
		return nil
	}
	if err := h.extend(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := r.records[3]; got.ClaimDelay != time.Hour || len(got.Layouts) != 2 || got.Instance != mine.Instance || got.Term != 5 {
		t.Errorf("put back %+v", got)
	}
}

// A release swaps the latest record of its own lease, and no other.
func TestReleaseSwapsItsOwn(t *testing.T) {
	extended, other, term := mine, mine, mine
	extended.Version, other.Instance, term.Term = "2", Instance{2}, 6
	for _, tt := range []struct {
		name  string
		swap  error // the first one's
		found Record
		load  error
		want  error
		swaps int
	}{
		{"works", nil, mine, nil, nil, 1},
		{"no answer", errDown, mine, nil, errDown, 1},
		{"an extension came before", ErrConflict, extended, nil, nil, 2},
		{"nothing came before", ErrConflict, mine, nil, ErrConflict, 1},
		{"another holder", ErrConflict, other, nil, ErrConflict, 1},
		{"another term", ErrConflict, term, nil, ErrConflict, 1},
		{"cannot be read", ErrConflict, mine, io.EOF, io.EOF, 1},
	} {
		r := &scripted{load: func() error { return tt.load }}
		h := (&stillClock{wall: now}).holding(t, r, Options{})
		r.swap = func(_, _ Record) error {
			if len(r.swapped) == 1 {
				r.put(tt.found)
				return tt.swap
			}
			return nil
		}
		err := h.release(t.Context(), now.Add(time.Second))
		if !errors.Is(err, tt.want) || (err == nil) != (tt.want == nil) || len(r.swapped) != tt.swaps {
			t.Errorf("%s: %v after %d swaps", tt.name, err, len(r.swapped))
		}
		if last := r.swapped[len(r.swapped)-1][1]; last.Held() || !last.Horizon.Equal(now.Add(time.Second)) || last.Term != 5 || last.Version != "" {
			t.Errorf("%s: released as %+v", tt.name, last)
		}
	}
}

// A memoryFile is a file in memory.
type memoryFile struct {
	content []byte
	err     error // of writes
}

func (f *memoryFile) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(f.content).ReadAt(p, off)
}

func (f *memoryFile) WriteAt(p []byte, off int64) (int, error) {
	if f.err != nil {
		return 0, f.err
	}
	if missing := int(off) + len(p) - len(f.content); missing > 0 {
		f.content = append(f.content, make([]byte, missing)...)
	}
	return copy(f.content[off:], p), nil
}

func (f *memoryFile) Sync() error { return f.err }

// lease returns the lease in a file.
func (f *memoryFile) lease(t *testing.T) (l savedLease) {
	t.Helper()
	text, err := (&slots{file: f, size: stateSlot, version: stateVersion}).read()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// The state file has all that a later process needs, and the limit follows the file.
func TestSavedLease(t *testing.T) {
	const stock = DefaultMaxAhead + markMargin
	f, c := &memoryFile{}, &stillClock{wall: now}
	layouts := []ServedLayout{{Name: "a", WorkerBits: 4}}
	h := c.holding(t, &scripted{}, Options{State: NewStateFile(f, "this file"), RegistryKey: "reg", Layouts: layouts})
	h.losses.safe.store(now.Add(time.Second), "a")
	check := func(name string, mark, limit time.Duration) {
		t.Helper()
		if got := h.lease.Limit().Sub(now); got != limit {
			t.Errorf("%s: the limit is %v, want %v", name, got, limit)
		}
		l := f.lease(t)
		if l.Identity != "this file" || l.Registry != "reg" || l.Ended || l.Worker != 3 || l.Instance != mine.Instance || l.Term != 5 ||
			!l.Horizon.Equal(mine.Horizon) || !l.Safe.Equal(now.Add(time.Second)) || l.Mark.Sub(now) != mark || l.Incarnation != "a" || len(l.Layouts) != 1 || l.Layouts[0] != layouts[0] {
			t.Errorf("%s: the file has %+v, want a mark at %v", name, l, mark)
		}
	}
	save := func() {
		t.Helper()
		if err := h.save(); err != nil {
			t.Error(err)
		}
	}
	save()
	check("at first", stock, stock)
	c.tick(-time.Second)
	save()
	check("a clock that was set back", stock, stock)
	f.err = errDown
	c.tick(10 * time.Second)
	if err := h.save(); !errors.Is(err, errDown) {
		t.Error(err)
	}
	f.err = nil
	check("a broken disk", stock, stock)
	c.tick(time.Hour)
	save()
	check("at the horizon", time.Minute, time.Minute)
	h.opts.State = nil
	h.horizon.store(now.Add(time.Hour))
	save()
	check("without a file", time.Minute, time.Hour)
}

// A lost lease ends in the file at the time after its IDs, and is handed back with the layouts that
// IDs were issued in.
func TestAbandon(t *testing.T) {
	for _, tt := range []struct {
		name     string
		sealedAt time.Duration
		why      error
		disk     error
		mark     time.Duration
		refused  bool
	}{
		{"after IDs", time.Second, ErrTaken, nil, time.Second, false},
		{"unused", -2 * time.Minute, ErrTaken, nil, -time.Minute, false},
		{"beyond the horizon", time.Hour, ErrTaken, nil, time.Minute, false},
		{"refused", -2 * time.Minute, &LayoutError{}, nil, -time.Minute, true},
		{"the disk is broken", time.Second, ErrTaken, errDown, time.Second, false},
	} {
		var log strings.Builder
		f := &memoryFile{err: tt.disk}
		h := (&stillClock{wall: now}).holding(t, &scripted{}, Options{State: NewStateFile(f, "id"), Logger: slog.New(slog.NewTextHandler(&log, nil))})
		h.sealedAt = now.Add(tt.sealedAt)
		h.prior.Layouts = []ServedLayout{{Name: "old"}}
		log.Reset()
		h.abandon(tt.why)
		s := h.saved
		if s.Worker != 3 || s.Instance != mine.Instance || s.Term != 5 || !s.Horizon.Equal(mine.Horizon) || s.Mark.Sub(now) != tt.mark || !s.sealed {
			t.Errorf("%s: kept %+v", tt.name, s)
		}
		if s.refused != tt.refused || tt.refused != (len(s.Layouts) == 1) {
			t.Errorf("%s: refused: %v, layouts %+v", tt.name, s.refused, s.Layouts)
		}
		if logged := strings.Contains(log.String(), "remove it"); logged != (tt.disk != nil) {
			t.Errorf("%s: logged %s", tt.name, log.String())
		}
		if tt.disk == nil {
			if l := f.lease(t); !l.Ended || l.Mark.Sub(now) != tt.mark || l.Term != 5 {
				t.Errorf("%s: the file has %+v", tt.name, l)
			}
		}
	}
}

// A stop waits until the wall clock has passed all IDs, for a while.
func TestAwaitFloor(t *testing.T) {
	for _, tt := range []struct {
		name              string
		settle            bool
		floor, step, want time.Duration
		warns             bool
	}{
		{"not asked for", false, time.Second, 0, 0, false},
		{"passed", true, 0, 0, 0, false},
		{"ahead", true, time.Second, 0, time.Second, false},
		{"a wall clock that was set back", true, time.Second, -time.Second, 2 * time.Second, false},
		{"a wall clock that was set forwards", true, time.Second, time.Second, 0, false},
		{"the limit", true, settleLimit, 0, settleLimit, false},
		{"beyond the limit", true, settleLimit + time.Millisecond, 0, settleLimit, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			c := &stillClock{wall: now}
			h := c.holding(t, &scripted{}, Options{Settle: tt.settle, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			c.wall = now.Add(tt.step)
			log.Reset()
			begin := time.Now()
			h.awaitFloor(now.Add(tt.floor))
			if took := time.Since(begin); took != tt.want || (log.Len() > 0) != tt.warns {
				t.Errorf("%s: it took %v, want %v; %s", tt.name, took, tt.want, log.String())
			}
		})
	}
}

// The status tells of a lease and its faults; each new fault is logged, and the end of all.
func TestFaultsInStatus(t *testing.T) {
	var log strings.Builder
	c := &stillClock{wall: now}
	h := c.holding(t, &scripted{}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	want := Status{Held: true, Worker: 3, Term: 5, Floor: before.Horizon, Horizon: mine.Horizon, Since: now, Extended: now, wait: h.Status().wait}
	if got := h.Status(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	logged := func(what string, want bool) {
		t.Helper()
		if strings.Contains(log.String(), what) != want {
			t.Errorf("logged %s", log.String())
		}
		log.Reset()
	}
	h.record.Offset, h.record.Horizon = 7, now.Add(time.Hour)
	c.tick(time.Second)
	h.recordResult(errDown)
	logged("the worker registry cannot be asked", true)
	if s := h.Status(); !errors.Is(s.Err, errDown) || !s.Extended.Equal(now) || s.ClockOffset != 0 {
		t.Errorf("got %+v", s)
	}
	c.tick(time.Hour)
	h.report(stateFault, io.EOF, "the disk")
	logged("the disk", true)
	h.recordResult(nil)
	logged("in order again", false)
	if s := h.Status(); errors.Is(s.Err, errDown) || !errors.Is(s.Err, io.EOF) || !s.Extended.Equal(now.Add(time.Second+time.Hour)) || s.ClockOffset != 7 || !s.Horizon.Equal(now.Add(time.Hour)) {
		t.Errorf("got %+v", s)
	}
	h.report(stateFault, nil, "")
	logged("in order again", true)
	h.report(stateFault, nil, "")
	logged("order", false)
	h.report(stateFault, errDown, "the disk")
	logged("the disk", true)
	h.reportNoLease(io.EOF)
	h.report(stateFault, errDown, "the disk")
	logged("the disk", false)
	if s := h.Status(); s.Held || s.Err != io.EOF || s.Worker != 0 {
		t.Errorf("without a lease: %+v", s)
	}
	h.fromFile = true
	h.recordStart()
	if s := h.Status(); !s.Extended.IsZero() || s.Err != nil {
		t.Errorf("from the file: %+v", s)
	}
}

// What outlives a lease in the status.
func TestStatusWithoutLease(t *testing.T) {
	k := stillKeeper(t, Options{})
	kept := Status{ClockStep: 1, PutBacks: 2, Lost: 3, Incarnation: "a", IncarnationSince: now, ClaimDelay: 4, ClaimWaits: 5}
	k.status = kept
	k.status.Worker, k.status.Held = 3, true
	k.reportNoLease(errDown)
	if kept.Err = errDown; k.Status() != kept {
		t.Errorf("got %+v, want %+v", k.Status(), kept)
	}
}

// A node may issue between its floor, less what all generators run ahead, and its horizon.
func TestErr(t *testing.T) {
	const ahead = 2 * time.Second
	k := stillKeeper(t, Options{MaxAhead: time.Hour, LeastAhead: ahead})
	for _, tt := range []struct {
		floor, horizon time.Duration
		want           string
	}{
		{ahead, 1, ""}, {ahead + time.Millisecond, time.Hour, "in 2s: reason"}, {0, 0, "ran out at 2027-01-15T08:00:00Z: a fault"}, {time.Hour, 0, "in 1h0m0s: reason"},
	} {
		k.status = Status{Held: true, Worker: 3, Floor: now.Add(tt.floor), Horizon: now.Add(tt.horizon), Err: errors.New("a fault"), wait: "reason"}
		if err := k.Err(); (err == nil) != (tt.want == "") || err != nil && !strings.HasSuffix(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

// The log warns of a worker ID that must not be used yet.
func TestFloorIsLogged(t *testing.T) {
	for ahead, warns := range map[time.Duration]bool{DefaultMaxAhead: false, DefaultMaxAhead + time.Millisecond: true} {
		var log strings.Builder
		h := (&stillClock{wall: now}).holding(t, &scripted{}, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		h.lease.floor = now.Add(ahead).UnixMilli()
		if h.recordStart(); strings.Contains(log.String(), "must not be used yet") != warns {
			t.Errorf("a floor %v ahead: logged %s", ahead, log.String())
		}
	}
}

// Free takes the holder from a record, and has the next one begin two minutes from now at the latest.
func TestFree(t *testing.T) {
	for _, tt := range []struct {
		name           string
		clock          time.Time
		horizon, until time.Duration // after the registry's clock
	}{
		{"far ahead", now, time.Hour, freeAhead},
		{"near", now, time.Second, time.Second},
		{"without a clock", time.Time{}, 1e6 * time.Hour, freeAhead},
	} {
		r, clock := &scripted{clock: tt.clock}, tt.clock
		if clock.IsZero() {
			clock = time.Now()
		}
		held := mine
		held.Horizon = clock.Add(tt.horizon)
		r.put(held)
		got, err := Free(t.Context(), r, 3)
		if off := got.Horizon.Sub(clock.Add(tt.until)); err != nil || got.Held() || got.Term != 6 || got.Version != "" || len(got.Layouts) != 1 || off > time.Minute || off < -time.Millisecond {
			t.Errorf("%s: %+v, %v", tt.name, got, err)
		}
	}
	r := &scripted{load: func() error { return errDown }}
	if _, err := Free(t.Context(), r, 3); !errors.Is(err, errDown) || len(r.swapped) > 0 {
		t.Errorf("without an answer: %v", err)
	}
	if _, err := Free(t.Context(), timeless{r: &scripted{}}, 3); !errors.Is(err, errDown) {
		t.Errorf("without the time: %v", err)
	}
}

// A timeless registry does not tell the time.
type timeless struct{ r *scripted }

func (r timeless) Load(ctx context.Context, id int64) (Record, error) { return r.r.Load(ctx, id) }
func (r timeless) List(ctx context.Context) ([]Record, error)         { return r.r.List(ctx) }
func (timeless) Clock(context.Context) (time.Time, error)             { return time.Time{}, errDown }
func (r timeless) Swap(ctx context.Context, old, next Record) (Record, error) {
	return r.r.Swap(ctx, old, next)
}
