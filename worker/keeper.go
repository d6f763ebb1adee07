package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// defaultMaxWorker bounds the worker ID where no layout does.
const defaultMaxWorker = 1023

// markMargin is how far beyond what may be in use the mark is written, plus a tick of the
// coarsest layout.
const markMargin = 2 * time.Second

// Bounds of the pause before the next attempt to get a lease; queuePause if all worker IDs are
// held.
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
	max    int64         // largest worker ID
	stock  time.Duration // from the clock to the mark
	saved  *savedLease   // the earlier lease, until begin has dealt with it
	notice error         // why the state file cannot be used

	pending *bid // the latest bid, if its outcome is unknown

	locks    []io.Closer // of the worker ID on this machine
	unlocked bool        // locking failed, and the log says so

	losses lossGuard
	pools  bool // it sees the cells of pools, too

	mu       sync.Mutex
	status   Status
	faults   [numFaults]error // present faults of a held lease
	throttle logThrottle
}

// NewKeeper returns a keeper; [Keeper.Run] makes it work. nil options mean all
// defaults. It fails, wrapping [leaf.ErrInvalid], if two layouts have one name, or do
// not hold the worker ID of a [Static].
func NewKeeper(reg Registry, opts *Options) (*Keeper, error) {
	o := opts.withDefaults()
	k := &Keeper{reg: reg, opts: o, log: o.Logger, clock: o.Clock, max: defaultMaxWorker}
	k.losses.Keeper = k
	var coarsest int64
	for i, l := range o.Layouts {
		coarsest = max(coarsest, l.Tick)
		if i > 0 && o.Layouts[i-1].Name == l.Name {
			return nil, fmt.Errorf("%w: two layouts are called %q", leaf.ErrInvalid, l.Name)
		}
		if i == 0 {
			k.max = l.MaxWorker()
		}
		k.max = min(k.max, l.MaxWorker())
	}
	k.stock = o.MaxAhead + markMargin + time.Duration(coarsest)*time.Millisecond
	if static, ok := reg.(interface{ chosen() int64 }); ok && static.chosen() > k.max {
		return nil, fmt.Errorf("%w: worker ID %d: the layouts hold 0 … %d", leaf.ErrInvalid, static.chosen(), k.max)
	}
	if o.State != nil {
		var err error
		if k.saved, k.notice, err = o.State.restore(o.RegistryKey); err != nil {
			return nil, fmt.Errorf("read the state file: %w", err)
		}
		if from := o.State.slots.found; from > 0 && from < stateVersion {
			k.log.Warn("the state file of an earlier release is written in a newer format from now on, which that release refuses: to go back to it, stop this server and remove the file",
				"from", from, "to", stateVersion)
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
	defer k.unlock()
	if k.notice != nil {
		k.log.Warn("the state file cannot be used: another worker ID may be claimed", "err", k.notice)
	}
	if s := k.opts.State; s != nil && s.identity == "" {
		k.log.Warn("nothing tells the state file from a copy of it: the worker ID is left to run out after a crash", "err", s.noIdentity)
	}
	pause := minPause
	for ctx.Err() == nil {
		h, err := k.begin(ctx)
		if err == nil {
			if err = h.confirm(ctx); err == nil {
				pause = minPause
				err = h.hold(ctx)
			}
			if ctx.Err() != nil && !errors.Is(err, ErrTaken) {
				return h.end()
			}
			h.abandon(err)
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

// retryPause returns how long to wait after err before a lease is tried for again: longer
// where the registry must be created first, and where no worker ID is free, unless this
// process has one to hand back.
func (k *Keeper) retryPause(err error, pause time.Duration) time.Duration {
	wait, ok := errors.AsType[*notYet](err)
	switch {
	case ok && k.saved == nil:
		pause = min(max(wait.at.Sub(k.clock.milli()), pause), queuePause)
		return pause + rand.N(minPause)
	case errors.Is(err, ErrNotCreated):
		return queuePause
	}
	return pause/2 + rand.N(pause/2)
}

var errStopped = errors.New("this server is stopping")

// sealAll seals every generator and returns the earliest time after all they issued.
func (k *Keeper) sealAll(why error) (floor time.Time) {
	for _, u := range k.opts.LeaseUsers {
		floor = later(floor, u.Seal(why))
	}
	return milliUp(floor)
}

// reportNoLease gives callers and the operator the reason for the missing lease.
func (k *Keeper) reportNoLease(err error) {
	k.sealAll(err)
	k.mu.Lock()
	defer k.mu.Unlock()
	s := &k.status
	*s = Status{Err: err, ClockStep: s.ClockStep, PutBacks: s.PutBacks, Lost: s.Lost,
		Incarnation: s.Incarnation, IncarnationSince: s.IncarnationSince, ClaimDelay: s.ClaimDelay, ClaimWaits: s.ClaimWaits}
	if k.throttle.worth(err, k.clock.mono()) {
		k.log.Warn("no worker ID: time-based IDs cannot be issued", "err", err)
	}
}

// A logThrottle keeps one fault from being logged again and again: its text may change
// from call to call.
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

// ask makes one call of the registry within [Options.CallTimeout].
func ask[T any](ctx context.Context, k *Keeper, do func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, k.opts.CallTimeout)
	defer cancel()
	got, err := do(limited)
	switch {
	case err == nil:
	case err == context.DeadlineExceeded && ctx.Err() == nil:
		err = silence{k.opts.CallTimeout}
	case errors.Is(err, ErrTaken), errors.Is(err, ErrWaiting), errors.Is(err, leaf.ErrClock): // of this node, not of the registry
	default:
		err = &leaf.StoreError{Err: err}
	}
	return got, err
}

func (k *Keeper) load(ctx context.Context, worker int64) (Record, error) {
	return ask(ctx, k, func(ctx context.Context) (Record, error) { return k.reg.Load(ctx, worker) })
}

func (k *Keeper) swap(ctx context.Context, old, next Record) (Record, error) {
	next.Version = "" // it may be a copy of old
	return ask(ctx, k, func(ctx context.Context) (Record, error) { return k.reg.Swap(ctx, old, next) })
}

// silence is a call of the registry that ran into its time limit.
type silence struct{ limit time.Duration }

func (s silence) Error() string { return fmt.Sprintf("no answer within %v", s.limit) }
func (s silence) Unwrap() error { return context.DeadlineExceeded }

// A view is the state of the registry at one time.
type view struct {
	records  map[int64]Record
	registry time.Time     // its clock; our own if it has no clock
	own      bool          // registry is our own clock
	offset   time.Duration // how far our clock was ahead of registry then
	at       time.Duration // time of the view by the monotonic clock
	slack    time.Duration // registry may be too early by so much
	late     time.Duration // registry may be too late by so much
	age      time.Duration // how long before the answer with registry the first question left, at most
	drift    time.Duration // of our clocks then
	epoch    ServerEpoch   // the answering server, asked before the time; zero: none may lose writes
}

// record returns the record of a worker, the zero one if it was never written.
func (v view) record(id int64) Record {
	if r, ok := v.records[id]; ok {
		return r
	}
	return Record{Worker: id}
}

// readAll asks the registry for its records, then for the answering server, then for its time. In
// that order an incarnation that has answered since before is the one of the records, and is not
// older than the time says.
func (k *Keeper) readAll(ctx context.Context) (view, error) {
	drift, begun := k.clock.drift(), k.clock.mono()
	list, err := ask(ctx, k, k.reg.List)
	if err != nil {
		return view{}, err
	}
	v, err := k.readClock(ctx)
	k.began(&v, begun, drift)
	v.records = make(map[int64]Record, len(list))
	for _, r := range list {
		if k.pools || !inPool(r.Worker) {
			v.records[r.Worker] = r
		}
	}
	if err == nil {
		k.losses.noteEpoch(v)
	}
	return v, err
}

// readClock asks the registry for all that but the records.
func (k *Keeper) readClock(ctx context.Context) (v view, err error) {
	drift, begun := k.clock.drift(), k.clock.mono()
	if err := k.losses.readEpoch(ctx, &v); err != nil {
		return v, err
	}
	err = k.readTime(ctx, &v)
	k.began(&v, begun, drift)
	return v, err
}

// began records when the first question of v left.
func (k *Keeper) began(v *view, begun, drift time.Duration) {
	v.age, v.drift = v.at-begun+max(0, k.clock.drift()-drift), drift
}

// asked returns the registry's time when the first question of v left, or an earlier one.
func (v view) asked() time.Time { return v.registry.Add(-v.late - v.age).Truncate(time.Millisecond) }

// readTime asks for the registry's time.
func (k *Keeper) readTime(ctx context.Context, v *view) error {
	before, asked := k.clock.milli(), k.clock.mono()
	t, err := ask(ctx, k, k.reg.Clock)
	now := k.clock.milli()
	v.registry, v.own, v.at = now, t.IsZero(), k.clock.mono()
	v.slack = v.at - asked + time.Millisecond // Keeper.now cuts off as much as that
	// The answer was right somewhere between the question and its arrival.
	if !v.own {
		v.registry = t.Add(now.Sub(before) / 2).Truncate(time.Millisecond)
		v.late = v.registry.Sub(t)
		v.slack -= v.late
	}
	v.offset = now.Sub(v.registry)
	return err
}

// now returns the registry's time: that of v, plus the time since.
func (k *Keeper) now(v view) time.Time {
	return v.registry.Add(k.clock.mono() - v.at).Truncate(time.Millisecond)
}

// latest returns now as late as it may be: the answer with the time in v may have come late, and the
// machine may have been suspended since the question, which only its wall clock shows.
func (k *Keeper) latest(v view) time.Time {
	now := k.now(v) // before the drift is read
	return now.Add(v.slack + max(0, k.clock.drift()-v.drift))
}

// earliest returns now as early as it may be.
func (k *Keeper) earliest(v view) time.Time { return k.now(v).Add(-v.late) }

// stamp completes what next says about its writer.
func (k *Keeper) stamp(next *Record, v view) {
	next.Owner, next.Seen, next.Offset = k.opts.Owner, v.asked(), v.offset
	if k.opts.Health != nil {
		next.Owner += " " + strings.ToValidUTF8(k.opts.Health(), "?")
	}
	k.losses.stamp(next, v)
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
