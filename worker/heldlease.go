package worker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
)

// A heldLease is one lease from its claim to its end.
type heldLease struct {
	*Keeper
	lease  *Lease
	record Record // as the registry last said that it holds it
	prior  Record // what the claim replaced
	alone  bool   // it goes on from the state file alone, and the registry has not agreed yet
	sealed int64  // after everything issued, once it was lost

	claimed   int64 // the claim's horizon
	claimedAt time.Duration

	held     saved         // what the state file says, but for its times; never changed
	horizon  atomic.Int64  // of record; after a start from the file alone, what is safe
	safe     atomic.Int64  // see saved
	extended chan struct{} // holds one element when horizon has grown
	mark     int64         // nothing from here on was issued; owned by keepMark once that runs
}

func (k *Keeper) newHeldLease(record, prior Record, floor int64) *heldLease {
	t := &heldLease{
		Keeper: k, record: record, prior: prior,
		lease:     &Lease{worker: record.Worker, floor: floor, wake: make(chan struct{}, 1)},
		held:      saved{Worker: record.Worker, Instance: record.Instance, Term: record.Term, Layouts: k.opts.Layouts},
		claimed:   record.Horizon,
		claimedAt: k.clock.mono(),
		extended:  make(chan struct{}, 1),
		mark:      floor, // a file that is gone on from says so already, and must not say less
	}
	t.horizon.Store(record.Horizon)
	return t
}

// hold has the generators issue until the lease is lost, which its error tells, or
// ctx ends.
func (t *heldLease) hold(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	marked := make(chan struct{})
	go func() { defer close(marked); t.keepMark(ctx) }()
	defer func() { cancel(); <-marked }()
	watch, err := t.watch(ctx)
	if err != nil {
		return err
	}
	for _, g := range t.opts.LeaseUsers {
		g.Begin(t.lease)
	}
	t.recordStart()
	extend := time.NewTimer(t.opts.Extend)
	defer extend.Stop()
	clockTick := time.NewTicker(clockInterval)
	defer clockTick.Stop()
	clocks := clockWatch{Keeper: t.Keeper}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clockTick.C:
			if !clocks.check(ctx) {
				continue
			}
			err = t.extend(ctx) // the clock was moved forwards, and the horizon is to follow
		case <-extend.C:
			err = t.extend(ctx)
		case <-watch:
			watch, err = t.checkForeignWrite(ctx)
		}
		if watch == nil && err == nil {
			watch, err = t.watch(ctx)
		}
		if ctx.Err() != nil && !errors.Is(err, ErrTaken) {
			return ctx.Err()
		}
		if errors.Is(err, ErrTaken) {
			t.sealed = t.sealAll(err)
			t.count(func(s *Status) { s.Lost++ })
			return err
		}
		t.recordResult(err)
		next := t.opts.Extend
		if err != nil {
			next /= 4
		}
		extend.Reset(next)
	}
}

// watch returns a channel that tells of foreign writes, nil if the registry does not.
func (t *heldLease) watch(ctx context.Context) (<-chan struct{}, error) {
	w, ok := t.reg.(Watcher)
	if !ok {
		return nil, nil
	}
	ch, err := w.Watch(ctx, t.record.Worker)
	if err != nil && !errors.Is(err, ErrTaken) {
		t.log.Debug("foreign writes to the worker registry are noticed only when the lease is extended", "err", err)
		return nil, nil
	}
	return ch, err
}

// checkForeignWrite watches on, and checks whether another node has written.
func (t *heldLease) checkForeignWrite(ctx context.Context) (<-chan struct{}, error) {
	if !sleep(ctx, watchPause) {
		return nil, ctx.Err()
	}
	ch, err := t.watch(ctx)
	if err != nil {
		return nil, err
	}
	found, err := t.load(ctx, t.record.Worker)
	if err != nil || found.Equal(t.record) {
		return ch, err
	}
	return ch, t.extend(ctx)
}

// watchPause keeps a watch that fires all the time from using a core.
const watchPause = 10 * time.Millisecond

// extend moves the horizon forwards. It returns an error that wraps [ErrTaken] when
// the lease is lost; other errors leave it as it is.
func (t *heldLease) extend(ctx context.Context) error {
	v, err := t.readClock(ctx)
	if err != nil {
		return fmt.Errorf("ask the worker registry for the time: %w", err)
	}
	if err := t.checkHorizon(v); err != nil {
		return err
	}
	next := t.record
	next.Horizon = max(t.record.Horizon, t.reach(v.registry))
	t.stamp(&next, v.registry, v.own)
	err = t.call(ctx, func(ctx context.Context) error { return t.reg.Swap(ctx, t.record, next) })
	switch {
	case err == nil:
		t.recordOffset(v.registry, v.own)
		return t.adopt(v, next)
	case errors.Is(err, ErrTaken):
		return err
	}
	return t.reconcile(ctx, v, next, err)
}

// reach returns the horizon that an extension may ask for: a clock that is far ahead
// of the registry's must not carry the lease with it.
func (t *heldLease) reach(registry int64) int64 {
	bound := max(registry+2*millis(t.opts.Horizon), t.claimed+millis(t.clock.mono()-t.claimedAt))
	return min(t.clock.ms()+millis(t.opts.Horizon), bound)
}

// reconcile finds out what the registry holds after an extension to next failed.
func (t *heldLease) reconcile(ctx context.Context, v view, next Record, cause error) error {
	found, err := t.load(ctx, t.record.Worker)
	if err != nil {
		return fmt.Errorf("extend the lease of worker ID %d: %w", t.record.Worker, errors.Join(cause, err))
	}
	switch {
	case t.taken(found) && !found.Held():
		return fmt.Errorf("%w: worker ID %d was freed, by an operator or by who held it meanwhile, or lost by the registry, term %d", ErrTaken, found.Worker, found.Term)
	case t.taken(found):
		return fmt.Errorf("%w: worker ID %d is now with %s, term %d", ErrTaken, found.Worker, ownerName(found.Owner), found.Term)
	case found.Horizon >= t.record.Horizon && found.Term == t.record.Term:
		// An extension whose answer was lost, or none.
		if err := t.adopt(v, found); err != nil || errors.Is(cause, ErrConflict) {
			return err
		}
		return fmt.Errorf("extend the lease of worker ID %d: %w", t.record.Worker, cause)
	}
	t.log.Error("the worker registry has lost writes: the lease is put back", "worker", t.record.Worker, "term", t.record.Term, "found", found.Term)
	t.count(func(s *Status) { s.PutBacks++ })
	next.Layouts = mergeLayouts(found.Layouts, t.record.Layouts)
	if err := t.call(ctx, func(ctx context.Context) error { return t.reg.Swap(ctx, found, next) }); err != nil {
		return fmt.Errorf("put the lease of worker ID %d back: %w", t.record.Worker, err)
	}
	return t.adopt(v, next)
}

// taken reports whether found means that another node has, or had, the worker ID: it
// is neither ours nor what was there before our claim.
func (t *heldLease) taken(found Record) bool {
	if found.Term == t.record.Term {
		return found.Instance != t.record.Instance
	}
	return found.Term > t.record.Term || found.Horizon > t.prior.Horizon
}

// adopt notes what the registry holds, unless the lease has run out meanwhile.
func (t *heldLease) adopt(v view, r Record) error {
	if err := t.checkHorizon(v); err != nil {
		return err
	}
	t.record, t.alone = r, false
	t.safe.Store(t.safeUntil(v, r))
	if r.Horizon <= t.horizon.Load() {
		return nil
	}
	t.horizon.Store(r.Horizon)
	select {
	case t.extended <- struct{}{}:
	default:
	}
	return nil
}

// checkHorizon reports that the lease has run out on a registry that may lose writes:
// what it holds of the lease may be all that is left, after others had the worker ID. A
// holder has this machine's clock say so as well, because a registry whose clock is wrong
// must not end all leases; after a start from the file alone that clock was not checked.
func (t *heldLease) checkHorizon(v view) error {
	now := t.now(v)
	if !t.alone {
		now = min(now, t.clock.wall().Add(t.opts.Tolerance).UnixMilli())
	}
	if v.forgets && now >= t.record.Horizon {
		return fmt.Errorf("%w: the lease of worker ID %d ran out at %s, and the worker registry may have lost who had it since; claiming again",
			ErrTaken, t.record.Worker, Time(t.record.Horizon).UTC().Format(time.RFC3339))
	}
	return nil
}

// keepMark moves the lease's limit forwards until ctx ends. It runs beside the calls
// of the registry: neither a slow disk nor a slow registry holds up the other.
func (t *heldLease) keepMark(ctx context.Context) {
	pause := minPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.lease.wake:
			if t.mark >= t.horizon.Load() {
				continue // the lease reaches no further
			}
		case <-t.extended:
		}
		err := t.save()
		t.recordSave(err)
		for err != nil && sleep(ctx, pause) {
			pause = min(2*pause, maxPause)
			err = t.save()
			t.recordSave(err)
		}
		pause = minPause
		sleep(ctx, markPause)
	}
}

// markPause keeps a generator that is never satisfied from wearing the disk out.
const markPause = 200 * time.Millisecond

// save writes the state file ahead of use, and then raises the limit.
func (t *heldLease) save() error {
	horizon := t.horizon.Load()
	if t.opts.State == nil {
		t.lease.limit.Store(horizon)
		return nil
	}
	mark := min(horizon, max(t.mark, t.clock.ms()+t.stock))
	held := t.held
	held.Horizon, held.Safe, held.Mark = horizon, t.safe.Load(), mark
	if err := t.opts.State.save(held); err != nil {
		return err
	}
	t.mark = mark
	t.lease.limit.Store(mark)
	return nil
}

// abandon ends a lease whose worker ID was lost: no process may go on from the file. What
// the registry still holds of it is handed back when the registry is read next.
func (t *heldLease) abandon() {
	ended := t.held
	ended.Horizon = t.horizon.Load()
	ended.Mark = min(max(t.sealed, t.lease.floor), ended.Horizon)
	ended.sealed = true
	t.saved = &ended
	if err := t.opts.State.end(ended); err != nil {
		t.log.Error("the state file still says that the worker ID is held: remove it before this server is started without its worker registry", "worker", t.held.Worker, "err", err)
	}
}

// settleLimit bounds how long a stop waits for the clock.
const settleLimit = 5 * time.Second

// end hands the worker ID back. The order matters: nothing is issued any more before
// the floor is known; no process goes on from the file any more before another node may be
// given the times from the floor on. After a failure the lease is left to run out.
// Where the registry cannot be asked the file stays as it is, for the next process.
func (t *heldLease) end() error {
	floor := max(t.sealAll(errStopped), t.lease.floor)
	if floor > t.lease.floor {
		t.settle(floor)
	}
	ctx, cancel := context.WithTimeout(context.Background(), t.opts.CallTimeout)
	defer cancel()
	if t.opts.State != nil {
		if _, err := t.reg.Load(ctx, t.record.Worker); err != nil {
			return fmt.Errorf("worker ID %d is not handed back; the next start goes on with it or hands it back: %w", t.record.Worker, err)
		}
		held := t.held
		held.Horizon, held.Mark = t.horizon.Load(), min(floor, t.horizon.Load())
		if err := t.opts.State.end(held); err != nil {
			return fmt.Errorf("worker ID %d is not handed back: %w", t.record.Worker, err)
		}
	}
	err := t.release(ctx, floor)
	if err != nil {
		return fmt.Errorf("hand worker ID %d back (it runs out by itself at %s): %w",
			t.record.Worker, Time(t.record.Horizon).UTC().Format(time.RFC3339), err)
	}
	t.log.Info("handed back the worker ID", "worker", t.record.Worker)
	return nil
}

// settle waits until this machine's clock has passed the floor, for a Java server that
// takes the worker ID over and goes by that clock alone.
func (t *heldLease) settle(floor int64) {
	wait := time.Duration(floor-t.clock.ms())*time.Millisecond - t.clock.Step()
	if !t.opts.Settle || wait <= 0 {
		return
	}
	if wait > settleLimit {
		t.log.Warn("this machine's clock is behind what was issued under the worker ID: do not give it to a server of Java Leaf before the clock has passed that", "worker", t.record.Worker, "by", wait)
	}
	time.Sleep(min(wait, settleLimit))
}

// release frees the record at floor. The registry may hold a later extension than the
// one that this process knows of: that one is tried too.
func (t *heldLease) release(ctx context.Context, floor int64) error {
	for {
		next := t.record
		next.Instance, next.Horizon = Instance{}, floor
		err := t.reg.Swap(ctx, t.record, next)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		found, lerr := t.reg.Load(ctx, t.record.Worker)
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		if found.Instance != t.record.Instance || found.Term != t.record.Term || found.Equal(t.record) {
			return err
		}
		t.record = found
	}
}
