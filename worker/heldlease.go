package worker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A heldLease is one lease from its claim to its end.
type heldLease struct {
	*Keeper
	lease    *Lease
	record   Record    // the registry's last known record
	prior    *Record   // the record before the claim; nil: unknown, of a lease from the state file
	fromFile bool      // it continues a lease from the state file, and the registry has not agreed yet
	sealedAt time.Time // the earliest time after everything issued, once the lease is lost

	claimHorizon time.Time
	claimedAt    time.Duration // by the monotonic clock

	inFile   savedLease    // the state file's lease without its times; never changed
	horizon  atomicTime    // of record; less where the registry may lose writes, see lossGuard
	extended chan struct{} // holds one element when horizon has grown
	mark     time.Time     // nothing from here on was issued; owned by keepMark once that runs
}

func (k *Keeper) newHeldLease(record Record, prior *Record, floor time.Time) *heldLease {
	h := &heldLease{
		Keeper: k, record: record, prior: prior,
		lease:        &Lease{worker: record.Worker, floor: unixMilli(floor), wake: make(chan struct{}, 1)},
		inFile:       savedLease{Worker: record.Worker, Instance: record.Instance, Term: record.Term, Layouts: k.opts.Layouts},
		claimHorizon: record.Horizon,
		claimedAt:    k.clock.mono(),
		extended:     make(chan struct{}, 1),
		mark:         floor, // the file of a continued lease has it already, and must not have less
	}
	h.horizon.store(record.Horizon)
	return h
}

// hold lets the generators issue until ctx ends or the lease is lost; the error then says why.
func (h *heldLease) hold(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	marked := make(chan struct{})
	go func() { defer close(marked); h.keepMark(ctx) }()
	defer func() { cancel(); <-marked }()
	watch, err := h.watch(ctx)
	if err != nil {
		return err
	}
	for _, g := range h.opts.LeaseUsers {
		g.Begin(h.lease)
	}
	h.recordStart()
	next := h.opts.Extend
	switch {
	case h.fromFile:
		next /= 4 // before the lease is safe no more
	case h.losses.short:
		next = 0
	}
	extend := time.NewTimer(next)
	clockTick := time.NewTicker(clockInterval)
	clocks := clockWatch{Keeper: h.Keeper}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-clockTick.C:
			if !clocks.check(ctx) {
				continue
			}
			err = h.extend(ctx) // the clock was moved forwards, and the horizon follows
		case <-extend.C:
			err = h.extend(ctx)
		case <-watch:
			watch, err = h.checkForeignWrite(ctx)
		}
		if watch == nil && err == nil {
			watch, err = h.watch(ctx)
		}
		if ctx.Err() != nil && !errors.Is(err, ErrTaken) {
			return ctx.Err()
		}
		if errors.Is(err, ErrTaken) {
			early := h.clock.milli().Before(h.record.Horizon)
			h.sealedAt = h.sealAll(err)
			if errors.Is(err, errReplaced) && early {
				h.log.Error("another node claimed the worker ID before the lease had run out: IDs of these times may exist twice; was the worker registry restored from a backup?",
					"worker", h.record.Worker, "from", h.lease.Floor().UTC(), "until", later(h.sealedAt, h.lease.Floor()).UTC(), "err", err)
			}
			h.count(func(s *Status) { s.Lost++ })
			return err
		}
		h.recordResult(err)
		next := h.opts.Extend
		if err != nil {
			next /= 4
		}
		extend.Reset(next)
	}
}

// watch returns a channel that tells of writes by others, nil if the registry does not.
func (h *heldLease) watch(ctx context.Context) (<-chan struct{}, error) {
	w, ok := h.reg.(Watcher)
	if !ok {
		return nil, nil
	}
	ch, err := w.Watch(ctx, h.record.Worker)
	if err != nil && !errors.Is(err, ErrTaken) {
		h.log.Debug("foreign writes to the worker registry are noticed only when the lease is extended", "err", err)
		return nil, nil
	}
	return ch, err
}

// checkForeignWrite renews the watch and checks whether another node has written.
func (h *heldLease) checkForeignWrite(ctx context.Context) (<-chan struct{}, error) {
	if !sleep(ctx, watchPause) {
		return nil, ctx.Err()
	}
	ch, err := h.watch(ctx)
	if err != nil {
		return nil, err
	}
	found, err := h.load(ctx, h.record.Worker)
	if err != nil || found.Equal(h.record) {
		return ch, err
	}
	return ch, h.extend(ctx)
}

// watchPause bounds the load of a watch that fires all the time.
const watchPause = 10 * time.Millisecond

// extend moves the horizon forwards. It returns an error that wraps [ErrTaken] when
// the lease is lost; other errors leave it as it is.
func (h *heldLease) extend(ctx context.Context) error {
	v, err := h.readClock(ctx)
	if err != nil {
		return fmt.Errorf("ask the worker registry for the time: %w", err)
	}
	if err := h.losses.checkHorizon(v, h.record, h.fromFile); err != nil {
		return err
	}
	h.losses.noteEpoch(v)
	next := h.record
	next.Horizon = later(h.record.Horizon, h.reach(v.registry))
	h.stamp(&next, v)
	got, err := h.swap(ctx, h.record, next)
	switch {
	case err == nil:
		h.report(clockFault, h.checkOffset(v.offset, "the worker registry's"), "IDs carry a time that is off")
		return h.adopt(ctx, v, got)
	case errors.Is(err, ErrTaken):
		return err
	}
	return h.reconcile(ctx, v, next, err)
}

// reach returns the horizon for an extension: a clock far ahead of the registry's must not carry
// the lease with it.
func (h *heldLease) reach(registry time.Time) time.Time {
	bound := later(registry.Add(2*h.opts.Horizon), h.claimHorizon.Add(h.clock.mono()-h.claimedAt))
	return earlier(h.clock.milli().Add(h.opts.Horizon), bound).Truncate(time.Millisecond)
}

// errReplaced is wrapped where the record shows another holder.
var errReplaced = fmt.Errorf("%w", ErrTaken)

// reconcile reads the record after an extension to next failed.
func (h *heldLease) reconcile(ctx context.Context, v view, next Record, cause error) error {
	found, err := h.load(ctx, h.record.Worker)
	if err != nil {
		return fmt.Errorf("extend the lease of worker ID %d: %w", h.record.Worker, errors.Join(cause, err))
	}
	switch {
	case h.taken(found) && !found.Held():
		return fmt.Errorf("%w: worker ID %d was freed, by an operator or by who held it meanwhile, or lost by the registry, term %d", ErrTaken,
			found.Worker, found.Term)
	case h.taken(found):
		return fmt.Errorf("%w: worker ID %d is now with %s, term %d", errReplaced, found.Worker, ownerName(found.Owner), found.Term)
	case found.Horizon.Before(h.record.Horizon) || found.Term != h.record.Term:
		h.log.Error("the worker registry has lost writes: the lease is put back", "worker", h.record.Worker, "term", h.record.Term, "found", found.Term)
		h.count(func(s *Status) { s.PutBacks++ })
	}
	// Or the extension succeeded without its answer. The registry may still lose it, see
	// [Registry].
	next.Horizon = later(next.Horizon, found.Horizon.Add(time.Millisecond))
	next.Layouts, next.ClaimDelay = mergeLayouts(found.Layouts, h.record.Layouts), max(next.ClaimDelay, found.ClaimDelay)
	got, err := h.swap(ctx, found, next)
	if err != nil {
		return fmt.Errorf("extend the lease of worker ID %d: %w", h.record.Worker, errors.Join(cause, err))
	}
	return h.adopt(ctx, v, got)
}

// taken reports whether found shows that another node has, or had, the worker ID: it is neither
// ours nor the record before our claim.
func (h *heldLease) taken(found Record) bool {
	if found.Term == h.record.Term {
		return found.Instance != h.record.Instance
	}
	return found.Term > h.record.Term || h.prior == nil || found.Horizon.After(h.prior.Horizon)
}

// adopt accepts the registry's record, unless the lease has run out meanwhile.
func (h *heldLease) adopt(ctx context.Context, v view, r Record) error {
	if err := h.losses.agree(ctx, v, h.record, r, h.fromFile); err != nil {
		return err
	}
	h.record, h.fromFile = r, false
	if !r.Horizon.After(h.horizon.load()) {
		return nil
	}
	h.horizon.store(r.Horizon)
	select {
	case h.extended <- struct{}{}:
	default:
	}
	return nil
}

// keepMark moves the lease's limit forwards until ctx ends. It runs alongside the calls of the
// registry, so that a slow disk and a slow registry do not delay each other.
func (h *heldLease) keepMark(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-h.lease.wake:
			if !h.mark.Before(h.horizon.load()) {
				continue // the mark cannot grow beyond the horizon
			}
		case <-h.extended:
		}
		for pause := minPause; ; pause = min(2*pause, maxPause) {
			err := h.save()
			h.report(stateFault, err, "the state file cannot be written: soon no time-based ID can be issued")
			if err == nil || !sleep(ctx, pause) {
				break
			}
		}
		sleep(ctx, markPause)
	}
}

// markPause bounds how often a generator that keeps asking has the file written.
const markPause = 200 * time.Millisecond

// save writes the state file ahead of use, and then raises the limit.
func (h *heldLease) save() error {
	horizon := h.horizon.load()
	if h.opts.State == nil {
		h.lease.limit.Store(unixMilli(horizon))
		return nil
	}
	mark := earlier(horizon, later(h.mark, h.clock.milli().Add(h.stock))).Truncate(time.Millisecond)
	l := h.inFile
	safe := h.losses.safe.load()
	l.Horizon, l.Safe, l.Mark, l.Incarnation = milliTime{horizon}, milliTime{safe.time}, milliTime{mark}, safe.incarnation
	if err := h.opts.State.save(l); err != nil {
		return err
	}
	h.mark = mark
	h.lease.limit.Store(unixMilli(mark))
	return nil
}

// abandon ends a lease whose worker ID was lost: no process may continue it from the file.
// If the registry still holds it, it is handed back when the registry is read next.
func (h *heldLease) abandon(why error) {
	ended := h.inFile
	ended.Horizon.Time = h.horizon.load()
	ended.Mark.Time = earlier(later(h.sealedAt, h.lease.Floor()), ended.Horizon.Time)
	ended.sealed = true
	h.saved = &ended
	if err := h.opts.State.end(ended); err != nil {
		h.log.Error("the state file still says that the worker ID is held: remove it before this server is started without its worker registry",
			"worker", h.inFile.Worker, "err", err)
	}
	if _, refused := errors.AsType[*LayoutError](why); refused { // nothing was issued in the layouts that the claim added
		ended.Layouts, ended.refused = h.prior.Layouts, true
	}
}

// settleLimit bounds how long a stop waits for the clock.
const settleLimit = 5 * time.Second

// end hands the worker ID back, in the order of the package's documentation: the generators
// are sealed, then the file, then the record. After a failure the lease runs out. If the
// registry cannot be asked the file stays as it is, for the next process.
func (h *heldLease) end() error {
	floor := later(h.sealAll(errStopped), h.lease.Floor())
	if floor.After(h.lease.Floor()) {
		h.awaitFloor(floor)
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.opts.CallTimeout)
	defer cancel()
	if h.opts.State != nil {
		if _, err := h.reg.Load(ctx, h.record.Worker); err != nil {
			return fmt.Errorf("worker ID %d is not handed back; the next start goes on with it or hands it back: %w", h.record.Worker, err)
		}
		l := h.inFile
		l.Horizon.Time = h.horizon.load()
		l.Mark.Time = earlier(floor, l.Horizon.Time)
		if err := h.opts.State.end(l); err != nil {
			return fmt.Errorf("worker ID %d is not handed back: %w", h.record.Worker, err)
		}
	}
	if err := h.release(ctx, floor); err != nil {
		return fmt.Errorf("hand worker ID %d back (it runs out by itself at %s): %w",
			h.record.Worker, h.record.Horizon.UTC().Format(time.RFC3339), err)
	}
	h.log.Info("handed back the worker ID", "worker", h.record.Worker)
	return nil
}

// awaitFloor waits until this machine's clock has passed the floor: a Java server that takes
// the worker ID over knows no floor, only that clock.
func (h *heldLease) awaitFloor(floor time.Time) {
	wait := floor.Sub(h.clock.milli()) - h.clock.step()
	if !h.opts.Settle {
		return
	}
	if wait > settleLimit {
		h.log.Warn("this machine's clock is behind what was issued under the worker ID: do not give it to a server of Java Leaf before the clock has passed that", "worker", h.record.Worker, "by", wait)
	}
	time.Sleep(min(wait, settleLimit))
}

// release swaps the record for one without a holder. The registry may have a later extension than
// this process knows: then release swaps that one.
func (h *heldLease) release(ctx context.Context, floor time.Time) error {
	for {
		next := h.record
		next.Version, next.Instance, next.Horizon = "", Instance{}, floor
		_, err := h.reg.Swap(ctx, h.record, next)
		if !errors.Is(err, ErrConflict) {
			return err
		}
		found, lerr := h.reg.Load(ctx, h.record.Worker)
		if lerr != nil {
			return errors.Join(err, lerr)
		}
		if found.Instance != h.record.Instance || found.Term != h.record.Term || found.same(h.record) {
			return err
		}
		h.record = found
	}
}
