package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// defaultMaxWorker bounds the worker ID where no layout does.
const defaultMaxWorker = 1023

// markMargin is how far beyond what may be in use the mark is written, and a tick of
// the coarsest layout beyond that.
const markMargin = 2 * time.Second

// Bounds of the pause between attempts to get a lease, and between reads of the registry where none is
// free.
const (
	minPause   = 100 * time.Millisecond
	maxPause   = 2 * time.Second
	queuePause = 5 * time.Second
)

// A Keeper claims a worker ID, extends its lease, and has its generators issue under
// it. See the package's documentation for the protocol. Its methods are safe for
// concurrent use; [Keeper.Run] is called once.
type Keeper struct {
	reg    Registry
	opts   Options
	log    *slog.Logger
	clock  *Clock
	max    int64  // largest worker ID
	stock  int64  // milliseconds by which the mark is ahead of the clock
	saved  *saved // the lease of an earlier process, until it has been dealt with
	notice error  // why the state file does not help

	unsure *bid // the latest bid, if its outcome is unknown

	mu       sync.Mutex
	status   Status
	faults   [numFaults]error // what is wrong while a lease is held
	throttle logThrottle
}

// NewKeeper returns a keeper; [Keeper.Run] makes it work. nil options mean all
// defaults. It fails, wrapping [leaf.ErrInvalid], if two layouts have one name, or do
// not hold the worker ID of a [Static].
func NewKeeper(reg Registry, opts *Options) (*Keeper, error) {
	o := Options{}
	if opts != nil {
		o = *opts
	}
	o.Horizon = cmp.Or(o.Horizon, DefaultHorizon)
	o.Extend = cmp.Or(o.Extend, min(DefaultExtend, o.Horizon/3))
	o.MaxAhead = cmp.Or(o.MaxAhead, DefaultMaxAhead)
	o.LeastAhead = cmp.Or(o.LeastAhead, o.MaxAhead)
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	o.Tolerance = cmp.Or(o.Tolerance, DefaultTolerance)
	o.MaxJump = cmp.Or(o.MaxJump, DefaultMaxJump)
	needed := 2*o.Extend + o.MaxAhead + o.Tolerance
	o.ClaimDelay = cmp.Or(o.ClaimDelay, needed)
	o.Owner = strings.ToValidUTF8(o.Owner, "?")
	o.Layouts = slices.Clone(o.Layouts)
	slices.SortFunc(o.Layouts, func(a, b ServedLayout) int { return cmp.Compare(a.Name, b.Name) })
	k := &Keeper{reg: reg, opts: o, log: o.Logger, clock: o.Clock, max: defaultMaxWorker}
	if k.log == nil {
		k.log = slog.New(slog.DiscardHandler)
	}
	if k.clock == nil {
		k.clock = NewClock()
	}
	if o.ClaimDelay > 0 && o.ClaimDelay < needed {
		k.log.Warn("claim_delay is too short for a holder whose record was lost to have stopped: leave it out, or set it to 0 where nothing can be lost",
			"claim_delay", o.ClaimDelay, "needed", needed)
	}
	var coarsest int64
	for i, l := range o.Layouts {
		coarsest = max(coarsest, l.Tick)
		if i > 0 && o.Layouts[i-1].Name == l.Name {
			return nil, fmt.Errorf("%w: two layouts are called %q", leaf.ErrInvalid, l.Name)
		}
		if i == 0 || l.MaxWorker() < k.max {
			k.max = l.MaxWorker()
		}
	}
	k.stock = millis(o.MaxAhead+markMargin) + coarsest
	if static, ok := reg.(interface{ chosen() int64 }); ok && static.chosen() > k.max {
		return nil, fmt.Errorf("%w: worker ID %d: the layouts hold 0 … %d", leaf.ErrInvalid, static.chosen(), k.max)
	}
	if o.State != nil {
		var err error
		if k.saved, k.notice, err = o.State.restore(o.RegistryKey); err != nil {
			return nil, fmt.Errorf("read the state file: %w", err)
		}
	}
	k.status.Err = errors.New("no worker ID has been claimed yet")
	return k, nil
}

// Run gets a lease, keeps it, gets another one when it was lost, and hands it back
// when ctx ends. It returns an error only if the lease could not be handed back in
// order: it then runs out by itself.
func (k *Keeper) Run(ctx context.Context) error {
	if k.opts.State != nil {
		defer k.opts.State.used.Store(false)
	}
	if k.notice != nil {
		k.log.Warn("the state file cannot be used: another worker ID may be claimed", "err", k.notice)
	}
	if s := k.opts.State; s != nil && s.identity == "" {
		k.log.Warn("nothing tells the state file from a copy of it: the worker ID is left to run out after a crash", "err", s.unproven)
	}
	pause := minPause
	for ctx.Err() == nil {
		t, err := k.begin(ctx)
		if err == nil {
			if err = t.confirm(ctx); err == nil {
				pause = minPause
				err = t.hold(ctx)
			}
			if ctx.Err() != nil && !errors.Is(err, ErrTaken) {
				return t.end()
			}
			t.abandon()
		}
		if ctx.Err() != nil {
			break
		}
		k.reportNoLease(err)
		if !sleep(ctx, k.retryPause(err, pause)) {
			break
		}
		pause = min(2*pause, maxPause)
	}
	k.sealAll(errStopped)
	return nil
}

// retryPause returns how long to wait after an attempt that failed: longer where no worker
// ID is free, unless that may be for want of one that is still to be handed back, and
// where the registry must be created first.
func (k *Keeper) retryPause(err error, pause time.Duration) time.Duration {
	none, full := errors.AsType[*noneFree](err)
	switch {
	case full && k.saved == nil:
		pause = min(max(time.Duration(none.until-k.clock.ms())*time.Millisecond, pause), queuePause)
		return pause + rand.N(minPause)
	case errors.Is(err, ErrNotCreated):
		return queuePause
	}
	return pause/2 + rand.N(pause/2)
}

var errStopped = errors.New("this server is stopping")

// sealAll seals every generator and returns the earliest time after all they issued.
func (k *Keeper) sealAll(why error) (floor int64) {
	for _, u := range k.opts.LeaseUsers {
		if after := u.Seal(why); !after.IsZero() {
			floor = max(floor, milliUp(after))
		}
	}
	return floor
}

// reportNoLease tells callers and operator why there is no lease.
func (k *Keeper) reportNoLease(err error) {
	k.sealAll(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.status = Status{Err: err, ClockStep: k.status.ClockStep, PutBacks: k.status.PutBacks, Lost: k.status.Lost}
	if k.throttle.worth(err, k.clock.mono()) {
		k.log.Warn("no worker ID: time-based IDs cannot be issued", "err", err)
	}
}

// A logThrottle keeps one trouble from being logged again and again: its text may change
// from one attempt to the next.
type logThrottle struct {
	text string
	at   time.Duration
}

// tellAgain is how long a fault is not logged again in other words.
const tellAgain = time.Minute

// worth reports whether to log err at the time now: if it is new, or says that the worker
// ID is lost.
func (t *logThrottle) worth(err error, now time.Duration) bool {
	soon := now-t.at < tellAgain && !errors.Is(err, ErrTaken)
	if t.text != "" && (t.text == err.Error() || soon) {
		return false
	}
	t.text, t.at = err.Error(), now
	return true
}

// call bounds one call of the registry.
func (k *Keeper) call(ctx context.Context, do func(context.Context) error) error {
	limited, cancel := context.WithTimeout(ctx, k.opts.CallTimeout)
	defer cancel()
	err := do(limited)
	switch {
	case err == nil:
		return nil
	case err == context.DeadlineExceeded && ctx.Err() == nil:
		return silence{k.opts.CallTimeout}
	case errors.Is(err, ErrTaken), errors.Is(err, ErrWaiting), errors.Is(err, leaf.ErrClock): // of this node, not of the registry
		return err
	}
	return &leaf.StoreError{Err: err}
}

// silence is a call of the registry that ran into its time limit.
type silence struct{ limit time.Duration }

func (s silence) Error() string { return fmt.Sprintf("no answer within %v", s.limit) }
func (s silence) Unwrap() error { return context.DeadlineExceeded }

// A view is what the registry says at one time.
type view struct {
	records  map[int64]Record
	registry int64         // its clock in Unix milliseconds; our own where it has none of its own
	own      bool          // registry is our own clock
	at       time.Duration // when that was, by the monotonic clock
	forgets  bool          // it may lose writes, so that claims wait
}

// readAll asks the registry for everything.
func (k *Keeper) readAll(ctx context.Context) (view, error) {
	records := make(map[int64]Record)
	err := k.call(ctx, func(ctx context.Context) error {
		list, err := k.reg.List(ctx)
		for _, r := range list {
			records[r.Worker] = r
		}
		return err
	})
	if err != nil {
		return view{}, err
	}
	v, err := k.readClock(ctx)
	v.records = records
	return v, err
}

// readClock asks the registry for everything but its records.
func (k *Keeper) readClock(ctx context.Context) (v view, err error) {
	if f, ok := k.reg.(LossyRegistry); ok && k.opts.ClaimDelay >= 0 {
		err = k.call(ctx, func(ctx context.Context) (err error) {
			v.forgets, err = f.MayLoseWrites(ctx)
			return err
		})
	}
	if err == nil {
		v.registry, v.own, err = k.registryClock(ctx)
		v.at = k.clock.mono()
	}
	return v, err
}

// now returns the registry's time, as the monotonic clock has moved on since v.
func (k *Keeper) now(v view) int64 { return v.registry + millis(k.clock.mono()-v.at) }

// registryClock returns the registry's time, or ours where it has no clock of its own.
func (k *Keeper) registryClock(ctx context.Context) (now int64, own bool, err error) {
	err = k.call(ctx, func(ctx context.Context) error {
		before := k.clock.ms()
		t, err := k.reg.Clock(ctx)
		switch {
		case err != nil:
			return err
		case t.IsZero():
			now, own = k.clock.ms(), true
		default:
			// The answer was right somewhere between the question and its arrival.
			now = t.UnixMilli() + (k.clock.ms()-before)/2
		}
		return nil
	})
	return now, own, err
}

// stamp completes what next says about its writer.
func (k *Keeper) stamp(next *Record, registry int64, own bool) {
	next.Owner, next.Seen, next.Offset = k.opts.Owner, registry, 0
	if !own {
		next.Offset = k.clock.ms() - registry
	}
}

// sleep waits for d and reports whether ctx is still alive.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func millis(d time.Duration) int64 { return d.Milliseconds() }
