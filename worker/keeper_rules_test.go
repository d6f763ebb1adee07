package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf"
)

// The layouts bound the worker ID, and their ticks the mark.
func TestNewKeeper(t *testing.T) {
	layout := func(name string, tick int64, bits int) ServedLayout {
		return ServedLayout{Name: name, Tick: tick, WorkerBits: bits}
	}
	const stock = DefaultMaxAhead + markMargin
	for _, tt := range []struct {
		name    string
		layouts []ServedLayout
		max     int64
		stock   time.Duration
	}{
		{"none", nil, defaultMaxWorker, stock},
		{"large", []ServedLayout{layout("a", 1, 20)}, 1<<20 - 1, stock + time.Millisecond},
		{"the smallest one, last", []ServedLayout{layout("a", 1000, 5), layout("b", 10, 3)}, 7, stock + time.Second},
		{"the smallest one, first", []ServedLayout{layout("b", 1000, 5), layout("a", 10, 3)}, 7, stock + time.Second},
		{"two of one name", []ServedLayout{layout("a", 1, 5), layout("b", 1, 5), layout("a", 1, 5)}, 0, 0},
	} {
		k, err := NewKeeper(nil, &Options{Layouts: tt.layouts})
		if tt.max == 0 {
			if !errors.Is(err, leaf.ErrInvalid) {
				t.Errorf("%s: %v", tt.name, err)
			}
			continue
		}
		if err != nil || k.max != tt.max || k.stock != tt.stock || !slices.IsSortedFunc(k.opts.Layouts, byName) {
			t.Errorf("%s: up to %d, %v ahead, %v", tt.name, k.max, k.stock, err)
		}
		if k.Err() == nil || k.Status().Held {
			t.Errorf("%s: it says that it has a worker ID", tt.name)
		}
	}
}

// The layouts hold the worker ID that an operator chose. A new state file is no older one.
func TestNewKeeperWithFiles(t *testing.T) {
	for worker, ok := range map[int64]bool{7: true, 8: false} {
		static, err := OpenStatic(&memoryFile{}, worker, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewKeeper(static, &Options{Layouts: bits(3)}); (err == nil) != ok || err != nil && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("worker ID %d: %v", worker, err)
		}
	}
	var log strings.Builder
	if _, err := NewKeeper(nil, &Options{State: NewStateFile(&memoryFile{}, "id"), Logger: slog.New(slog.NewTextHandler(&log, nil))}); err != nil || log.Len() > 0 {
		t.Errorf("%v, logged %s", err, log.String())
	}
}

// Defaults fill the operator's gaps, and nothing else.
func TestDefaults(t *testing.T) {
	o := (*Options)(nil).withDefaults()
	if o.Horizon != 30*time.Minute || o.Extend != 10*time.Second || o.MaxAhead != 2*time.Second || o.LeastAhead != 2*time.Second || o.CallTimeout != 5*time.Second ||
		o.Tolerance != 5*time.Second || o.MaxJump != 24*time.Hour || o.ClaimDelay != 27*time.Second || o.raises || o.short || o.Clock == nil || o.Logger == nil {
		t.Errorf("got %+v", o)
	}
	if o = (&Options{Horizon: 9 * time.Second, Owner: "\xff"}).withDefaults(); o.Extend != 3*time.Second || o.Owner != "?" {
		t.Errorf("with a short horizon: %+v", o)
	}
	set := Options{Horizon: 1, Extend: 2, MaxAhead: 3, LeastAhead: 4, CallTimeout: 5, Tolerance: 6, MaxJump: 7, ClaimDelay: 13}
	if o = set.withDefaults(); o.Horizon != 1 || o.Extend != 2 || o.MaxAhead != 3 || o.LeastAhead != 4 || o.CallTimeout != 5 || o.Tolerance != 6 || o.MaxJump != 7 || o.ClaimDelay != 13 || !o.raises || o.short {
		t.Errorf("with all set: %+v", o)
	}
	for delay, short := range map[time.Duration]bool{12: true, 13: false, -1: false} {
		set.ClaimDelay = delay
		if o = set.withDefaults(); o.short != short || o.ClaimDelay != delay {
			t.Errorf("a claim delay of %d: %+v", delay, o)
		}
	}
}

// A claim that the registry does not show any more is lost. If the registry shows the record before
// it, the keeper makes the same claim again.
func TestCheckClaim(t *testing.T) {
	rival, later := mine, mine
	rival.Instance, later.Term = Instance{2}, 6
	for _, tt := range []struct {
		name        string
		found       Record
		want        string
		pending, ok bool
	}{
		{"it is there", mine, "", false, true},
		{"what was before", before, "does not show the claim", true, false},
		{"another instance", rival, "does not hold the claim", false, false},
		{"another term", later, "has term 6, of an unknown node", false, false},
	} {
		h := (&stillClock{wall: now}).holding(t, &scripted{}, Options{})
		err := h.checkClaim(map[int64]Record{3: tt.found})
		if errors.Is(err, ErrTaken) == tt.ok || err != nil && !strings.Contains(err.Error(), tt.want) || (h.pending != nil) != tt.pending {
			t.Errorf("%s: %v, pending: %v", tt.name, err, h.pending)
		}
		if tt.pending && (!h.pending.old.Equal(before) || !h.pending.next.Equal(mine)) {
			t.Errorf("%s: pending %+v", tt.name, h.pending)
		}
	}
}

// One look after the claim sets from when on times may be issued, or nothing.
func TestConfirmClaim(t *testing.T) {
	const delay = 20 * time.Second
	for _, tt := range []struct {
		name  string
		list  error
		found Record
		epoch ServerEpoch
		since time.Duration // the incarnation has answered for
		err   error
		floor time.Duration
		limit time.Duration
	}{
		{"loses nothing", nil, mine, ServerEpoch{}, 0, nil, -time.Minute, time.Minute},
		{"unreadable", errDown, mine, ServerEpoch{}, 0, errUnreadable, -time.Minute, time.Minute},
		{"lost", nil, before, ServerEpoch{}, 0, ErrTaken, -time.Minute, time.Minute},
		{"it has answered for long", nil, mine, ServerEpoch{Lossy: true, Incarnation: "a"}, time.Hour, nil, -time.Minute, delay - DefaultTolerance},
		{"it has answered for the delay", nil, mine, ServerEpoch{Lossy: true, Incarnation: "a"}, delay, nil, 0, delay - DefaultTolerance},
		{"it has not", nil, mine, ServerEpoch{Lossy: true, Incarnation: "a"}, delay - time.Second, ErrWaiting, -time.Minute, time.Minute},
	} {
		r := &scripted{list: func() error { return tt.list }}
		h := (&stillClock{wall: now}).holding(t, r, Options{ClaimDelay: delay, Extend: time.Second})
		tt.found.Incarnation, tt.found.Since = tt.epoch.Incarnation, now.Add(-tt.since)
		h.record.Seen = now
		h.losses.claimed(view{registry: now, epoch: tt.epoch}, h.record)
		r.put(tt.found)
		if tt.found.Term != mine.Term {
			h.prior = new(tt.found)
		}
		h.reg = epochs{r, tt.epoch, nil}
		h.mark = now.Add(-time.Hour)
		err := h.confirmClaim(t.Context())
		if !errors.Is(err, tt.err) || (err == nil) != (tt.err == nil) {
			t.Errorf("%s: %v", tt.name, err)
		}
		if floor, limit := h.lease.Floor().Sub(now), h.horizon.load().Sub(now); floor != tt.floor || limit != tt.limit || err == nil && !h.mark.Equal(h.lease.Floor()) {
			t.Errorf("%s: from %v to %v, mark %v", tt.name, floor, limit, h.mark.Sub(now))
		}
	}
}

// The keeper repeats its question to an unreadable registry for half of a lease.
func TestConfirmWhileUnreadable(t *testing.T) {
	const horizon = time.Minute
	for away, want := range map[time.Duration]error{horizon/2 - 5*time.Second: nil, 2 * horizon: errUnreadable} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			r := &scripted{}
			k, err := NewKeeper(r, &Options{Horizon: horizon})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 3*horizon)
			defer cancel()
			h, err := k.claim(ctx, view{registry: begin})
			if err != nil {
				t.Fatal(err)
			}
			r.list = func() error {
				if time.Since(begin) < away {
					return errDown
				}
				return nil
			}
			if err := h.confirm(ctx); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("away for %v: %v", away, err)
			}
			if took := time.Since(begin); want != nil && (took <= horizon/2 || took > horizon/2+2*maxPause) {
				t.Errorf("given up after %v", took)
			}
			if !errors.Is(k.Err(), errDown) {
				t.Errorf("callers are told %v", k.Err())
			}
		})
	}
}

// A user of leases notes the reason for its seal.
type noter struct{ why error }

func (*noter) Begin(*Lease) {}

func (n *noter) Seal(why error) time.Time {
	n.why = why
	return time.Time{}
}

// Callers and the operator learn why the keeper has no lease, the operator once.
func TestReportNoLease(t *testing.T) {
	var log strings.Builder
	user := &noter{}
	k := stillKeeper(t, Options{LeaseUsers: []LeaseUser{user}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		k.reportNoLease(errDown)
	}
	if user.why != errDown || k.Err() != errDown || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("callers are told %v, the status %v, the log %s", user.why, k.Err(), log.String())
	}
}

// A swap writes no version: the registry gives it.
func TestSwapWritesNoVersion(t *testing.T) {
	r := &scripted{}
	k := stillKeeper(t, Options{})
	k.reg = r
	r.put(mine)
	next := mine
	next.Term++
	if _, err := k.swap(t.Context(), mine, next); err != nil || r.records[3].Version != "" || r.swapped[0][0].Version != "1" {
		t.Errorf("%+v, %v", r.swapped, err)
	}
}

// A keeper whose registry never answers stops without a complaint, and gives its file up.
func TestStopWithoutLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		user, state := &noter{}, NewStateFile(&memoryFile{}, "id")
		opts := Options{State: state, LeaseUsers: []LeaseUser{user}}
		k, err := NewKeeper(hanging{&scripted{}}, &opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := NewKeeper(&scripted{}, &opts); err == nil {
			t.Error("two keepers have one file")
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := k.Run(ctx); err != nil {
			t.Error(err)
		}
		if user.why != errStopped || !strings.Contains(k.Err().Error(), "no worker ID has been claimed yet") {
			t.Errorf("callers are told %v, the status %v", user.why, k.Err())
		}
		if _, err := NewKeeper(&scripted{}, &opts); err != nil {
			t.Errorf("the file is still in use: %v", err)
		}
	})
}

// A hanging registry lists nothing until the caller gives up.
type hanging struct{ *scripted }

func (hanging) List(ctx context.Context) ([]Record, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A worker ID is locked once for all layouts with equal values, and no longer than it is used. Where
// locks do not work a warning has to do.
func TestLock(t *testing.T) {
	var log strings.Builder
	open := 0
	var fails error
	lock := func(l ServedLayout, id int64) (io.Closer, error) {
		if l.Name != "" || fails != nil {
			return nil, errors.Join(fails, errors.New(l.Name))
		}
		open++
		return closing(func() { open-- }), nil
	}
	k := stillKeeper(t, Options{Lock: lock, Layouts: []ServedLayout{{Name: "a"}, {Name: "b"}, {Name: "c", Tick: 2}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 2 {
		if err := k.lock(5); err != nil || open != 2 {
			t.Errorf("%d locks, %v", open, err)
		}
	}
	k.unlock()
	k.unlock()
	if open != 0 {
		t.Errorf("%d locks are left", open)
	}
	for _, fails = range []error{errDown, io.EOF} {
		if err := k.lock(5); err != nil || len(k.locks) > 0 {
			t.Errorf("without locks: %v", err)
		}
	}
	if strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "it cannot be locked") {
		t.Errorf("logged %s", log.String())
	}
	fails = ErrInUse
	if err := k.lock(5); !errors.Is(err, ErrInUse) {
		t.Errorf("in use: %v", err)
	}
}

type closing func()

func (c closing) Close() error { c(); return nil }
