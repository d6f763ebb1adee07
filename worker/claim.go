package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxRivals is how many candidates may be lost to others before the registry is read again.
const maxRivals = 16

// begin gets a lease. It hands back the lease of a certainly dead earlier process, and claims a
// worker ID. Without an answer from the registry it continues the earlier lease.
func (k *Keeper) begin(ctx context.Context) (*heldLease, error) {
	k.unlock()
	k.clock.anchor() // no lease is held: the wall clock may move the time either way, and is checked below
	v, err := k.readAll(ctx)
	if err != nil {
		if h := k.resume(); h != nil {
			k.log.Warn("the worker registry cannot be asked; going on with the lease in the state file",
				"worker", h.record.Worker, "until", h.horizon.load(), "err", err)
			return h, nil
		}
		return nil, fmt.Errorf("ask the worker registry: %w", err)
	}
	if err := k.handBack(ctx, v); err != nil {
		return nil, err
	}
	if err := k.checkClock(v); err != nil {
		return nil, err
	}
	if err := checkLayouts(k.opts.Layouts, v.records); err != nil {
		return nil, err
	}
	if err := k.losses.checkDelay(v); err != nil {
		return nil, err
	}
	return k.claim(ctx, v)
}

// resume returns the lease in the state file. It returns nil unless the process that held it is
// certainly dead: otherwise two would issue under one lease. Until the registry has agreed again,
// the lease reaches only as far as is safe after any loss.
func (k *Keeper) resume() *heldLease {
	s := k.saved
	if s == nil || s.Ended || s.sealed || !k.opts.State.proven(s) || s.Worker > k.max || !slices.Equal(s.Layouts, k.opts.Layouts) {
		return nil
	}
	limit := earlier(s.Horizon.Time, s.Safe.Time)
	if !later(k.clock.milli(), s.Mark.Time).Before(limit) || k.lock(s.Worker) != nil {
		return nil
	}
	k.saved = nil
	record := Record{Worker: s.Worker, Instance: s.Instance, Term: s.Term, Horizon: s.Horizon.Time, Layouts: s.Layouts, Incarnation: s.Incarnation}
	h := k.newHeldLease(record, nil, s.Mark.Time)
	h.fromFile = true
	if k.sharesMachine(s.Incarnation == "") {
		h.lease.shared = unixMilli(k.clock.milli())
	}
	h.horizon.store(limit)
	h.losses.continued(limit, record)
	return h
}

// handBack releases, at its mark, the lease in the state file, if its process is known to
// be dead, or the one that this process lost, whose generators are sealed. It is repeated
// until the record shows no holder, or another one. The file says first that no process may
// continue the lease, because the release may arrive late.
func (k *Keeper) handBack(ctx context.Context, v view) error {
	s := k.saved
	if s == nil {
		return nil
	}
	old := v.record(s.Worker)
	next, ok := k.released(s, old)
	if !ok {
		k.saved = nil
		return nil
	}
	if !s.Ended {
		if err := k.opts.State.end(*s); err != nil {
			return err
		}
		s.Ended = true
	}
	k.stamp(&next, v)
	got, err := k.swap(ctx, old, next)
	if err != nil {
		k.log.Debug("the worker ID that was held before is not handed back yet", "worker", s.Worker, "until", old.Horizon, "err", err)
		return nil
	}
	if next.Term > old.Term {
		k.log.Error("the worker registry has lost writes: what this node issued is put back", "worker", s.Worker, "floor", s.Mark.Time)
		k.count(func(st *Status) { st.PutBacks++ })
	}
	k.saved = nil
	v.records[s.Worker] = got
	return nil
}

// released returns the record that replaces old when the lease s is handed back. It is not
// ok if the lease is left to run out, or is another node's by now.
func (k *Keeper) released(s *savedLease, old Record) (next Record, ok bool) {
	proven := k.opts.State.proven(s)
	switch {
	case !proven && !k.opts.Reclaim:
		k.log.Warn("the state file is a copy, or from before a restart of this machine, or cannot be told from one: its worker ID is left to run out", "worker", s.Worker, "until", s.Horizon.Time)
		return Record{}, false
	case !proven && !old.Horizon.Equal(s.Horizon.Time):
		k.log.Warn("the state file is out of date: its worker ID is left to run out", "worker", s.Worker, "until", old.Horizon)
		return Record{}, false
	}
	next = old
	next.Instance = Instance{}
	if s.refused {
		next.Layouts = s.Layouts
	}
	switch {
	case old.Instance == s.Instance && old.Term == s.Term:
		next.Horizon = s.Mark.Time
	case old.Term < s.Term && old.Horizon.Before(s.Mark.Time):
		next.Term, next.Horizon, next.Layouts = s.Term, s.Mark.Time, mergeLayouts(old.Layouts, s.Layouts)
	default:
		return Record{}, false
	}
	return next, true
}

// claim takes a worker ID: the assigned one, or a free one.
func (k *Keeper) claim(ctx context.Context, v view) (*heldLease, error) {
	now := k.clock.milli()
	horizon := now.Add(k.opts.Horizon).Truncate(time.Millisecond)
	if horizon.After(v.registry.Add(2 * k.opts.Horizon)) {
		return nil, fmt.Errorf("%w: it is %v ahead of the worker registry's, and a lease must not reach so far: set the clock",
			ErrClockOff, now.Sub(v.registry))
	}
	if k.sharesMachine(v.own) {
		horizon = horizon.Add(min(k.opts.MaxAhead, k.opts.Horizon)) // generators begin so far ahead
	}
	if b := k.pending; b != nil && b.won(v.records[b.next.Worker]) && k.lock(b.next.Worker) == nil {
		got, err := k.rewriteClaim(ctx, *b, v.records[b.next.Worker])
		if err != nil {
			return nil, fmt.Errorf("claim worker ID %d: %w", b.next.Worker, err)
		}
		return k.enter(v, *b, got), nil
	}
	ids, err := k.candidates(ctx, v, earlier(now, v.registry.Add(-v.late)))
	if err != nil {
		return nil, err
	}
	if b := k.pending; b != nil && v.record(b.next.Worker).Equal(b.old) { // before another worker ID is used up
		ids = slices.Insert(slices.DeleteFunc(ids, func(id int64) bool { return id == b.next.Worker }), 0, b.next.Worker)
	}
	var inUse error
	rivals := 0
	for _, id := range ids {
		if rivals == maxRivals {
			break
		}
		if inUse = k.lock(id); inUse != nil {
			k.discard(id)
			continue
		}
		bid := k.bid(v, id, horizon)
		if err := k.announce(bid); err != nil {
			return nil, err
		}
		got, err := k.place(ctx, bid)
		if errors.Is(err, ErrConflict) {
			rivals++
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("claim worker ID %d: %w", id, err)
		}
		return k.enter(v, bid, got), nil
	}
	if rivals == 0 {
		return nil, inUse
	}
	return nil, errors.New("other nodes were faster to claim every worker ID that was tried; trying again")
}

// discard gives up a worker ID that this process got and another one uses.
func (k *Keeper) discard(id int64) {
	if d, ok := k.reg.(Disposable); ok {
		d.Discard(id)
	}
}

// announce writes a bid to the state file first: after a kill the next process can hand the claim
// back, and a process that cannot write claims nothing.
func (k *Keeper) announce(b bid) error {
	return k.opts.State.end(savedLease{
		Worker: b.next.Worker, Instance: b.next.Instance, Term: b.next.Term,
		Horizon: milliTime{b.next.Horizon}, Mark: milliTime{b.old.Horizon}, Layouts: k.opts.Layouts,
	})
}

// enter returns the lease that a successful bid gives. It counts once it is confirmed.
func (k *Keeper) enter(v view, b bid, got Record) *heldLease {
	k.losses.claimed(v, got)
	h := k.newHeldLease(got, &b.old, b.old.Horizon)
	if k.sharesMachine(v.own) {
		h.lease.shared = unixMilli(k.clock.milli())
	}
	return h
}

// sharesMachine reports whether processes of this machine with other registries can have had a
// worker ID until now. Own is whether the keeper's registry has no clock, or may have none. An
// assigned worker ID is the operator's to keep apart.
func (k *Keeper) sharesMachine(own bool) bool {
	_, assigned := k.reg.(Assigner)
	return k.opts.Lock != nil && own && !assigned
}

// A bid is one swap that claims a worker ID. Its outcome may be unknown. No other bid has
// the instance in next, so it may be repeated as it is, and its record told from all others.
type bid struct{ old, next Record }

// bid returns the bid for a worker ID: the pending one if that may still be successful,
// else a new one.
func (k *Keeper) bid(v view, id int64, horizon time.Time) bid {
	old := v.record(id)
	if b := k.pending; b != nil && b.old.Equal(old) && b.next.Horizon.After(k.clock.milli().Add(k.opts.Horizon/2)) {
		return bid{old, b.next}
	}
	next := Record{Worker: id, Instance: NewInstance(), Term: old.Term + 1, Horizon: horizon,
		Layouts: mergeLayouts(old.Layouts, k.opts.Layouts), ClaimDelay: old.ClaimDelay}
	k.stamp(&next, v)
	return bid{old, next}
}

// place makes a bid and finds out what became of it. The error wraps [ErrConflict] if
// another node was faster.
func (k *Keeper) place(ctx context.Context, b bid) (Record, error) {
	k.pending = nil
	got, err := k.swap(ctx, b.old, b.next)
	if err == nil {
		return got, nil
	}
	found, lerr := k.load(ctx, b.old.Worker)
	switch {
	case lerr != nil:
		err = lerr
	case b.won(found):
		return k.rewriteClaim(ctx, b, found)
	case errors.Is(err, ErrConflict) && found.same(b.old):
		err = fmt.Errorf("%w: the record was changed, and is read as it was before", ErrStaleReads)
	case errors.Is(err, ErrConflict), !found.Equal(b.old):
		return Record{}, fmt.Errorf("%w: %w", ErrConflict, err)
	}
	k.pending = &b
	return Record{}, err
}

// rewriteClaim writes the content of a bid again and waits for the answer. The bid's own answer was
// lost, and the registry may still lose a write that only a read has shown, see [Registry].
func (k *Keeper) rewriteClaim(ctx context.Context, b bid, found Record) (Record, error) {
	next := found
	next.Horizon = found.Horizon.Add(time.Millisecond)
	got, err := k.swap(ctx, found, next)
	if err != nil {
		k.pending = &b
		return Record{}, err
	}
	k.pending = nil
	return got, nil
}

// won reports whether r is the content of the bid.
func (b bid) won(r Record) bool { return r.Instance == b.next.Instance && r.Term == b.next.Term }

func ownerName(owner string) string { return cmp.Or(owner, "an unknown node") }

// confirm runs before the first time is issued. It checks that the registry has not lost the claim,
// that no other node serves a layout of the same name with other values, and that the registry has
// not recently lost a holder. Then it writes the lease to the state file. Of two nodes with such
// layouts and concurrent claims at least one sees the other here. After a failure the caller
// abandons the claim.
func (h *heldLease) confirm(ctx context.Context) error {
	if h.fromFile {
		return nil
	}
	waits := false
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := h.confirmClaim(ctx)
		wait, early := errors.AsType[*notYet](err)
		switch {
		case err == nil:
			return h.save()
		case early:
			pause = min(wait.at.Sub(h.clock.milli()), h.opts.Extend)
			h.reportWait(err, waits)
			waits = true
		case !errors.Is(err, errUnreadable) || h.clock.milli().After(h.record.Horizon.Add(-h.opts.Horizon/2)):
			return err
		default:
			h.reportNoLease(err)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
		if waits { // the lease continues meanwhile, and others see that the registry answers
			if err := h.extend(ctx); errors.Is(err, ErrTaken) {
				return err
			}
		}
	}
}

// errUnreadable is wrapped where the registry cannot be read.
var errUnreadable = errors.New("ask the worker registry")

// confirmClaim reads the registry once, after the claim, and sets from when on times may be issued.
func (h *heldLease) confirmClaim(ctx context.Context) error {
	v, err := h.readAll(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	if err := errors.Join(h.checkClaim(v.records), checkLayouts(h.opts.Layouts, v.records), h.losses.checkDelay(v)); err != nil {
		return err
	}
	floor, err := h.losses.claimFloor(v, h.record)
	if err == nil {
		h.lease.floor = max(h.lease.floor, unixMilli(floor))
		h.mark = later(h.mark, h.lease.Floor())
		h.horizon.store(h.losses.confirm(v, h.record, h.lease.Floor()))
	}
	return err
}

// checkClaim reports a claim that the registry does not hold any more. A registry that shows what
// was there before has lost the claim, or its reads lag: the same claim is made again, because
// every other one would use up a worker ID.
func (h *heldLease) checkClaim(records map[int64]Record) error {
	found := view{records: records}.record(h.record.Worker)
	if found.Equal(*h.prior) {
		h.pending = &bid{*h.prior, h.record}
		return fmt.Errorf("%w: the worker registry does not show the claim of worker ID %d that it has just acknowledged; claiming it again", ErrTaken, h.record.Worker)
	}
	if found.Instance != h.record.Instance || found.Term != h.record.Term {
		return fmt.Errorf("%w: the worker registry does not hold the claim of worker ID %d any more: it has term %d, of %s; claiming again",
			ErrTaken, h.record.Worker, found.Term, ownerName(found.Owner))
	}
	return nil
}

// checkLayouts reports a layout that a record has with other values: the IDs of that name would
// not be unique. The error is a [LayoutError].
func checkLayouts(layouts []ServedLayout, records map[int64]Record) error {
	for _, ours := range layouts {
		known := false
		for _, r := range records {
			i := slices.IndexFunc(r.Layouts, func(l ServedLayout) bool { return l.Name == ours.Name })
			known = known || i >= 0
			if i >= 0 && r.Layouts[i] != ours {
				return &LayoutError{Ours: ours, Theirs: r.Layouts[i], Worker: r.Worker, Owner: r.Owner}
			}
		}
		if ours.IsDefault() && !known {
			if err := checkFirstDefault(ours, records); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFirstDefault reports a default layout that no record names, and that cannot be the one of
// the servers that wrote the records: those of earlier releases did not say which of their layouts
// was the default.
func checkFirstDefault(ours ServedLayout, records map[int64]Record) error {
	var why error
	for _, r := range records {
		if len(r.Layouts) == 0 || slices.ContainsFunc(r.Layouts, ServedLayout.IsDefault) {
			continue
		}
		if slices.ContainsFunc(r.Layouts, ours.sameIDs) {
			return nil
		}
		why = &LayoutError{Ours: ours, Theirs: r.Layouts[0], Worker: r.Worker, Owner: r.Owner}
	}
	return why
}

// A LayoutError says that IDs were issued with other values under a layout's name, or to callers
// who name no layout.
type LayoutError struct {
	Ours, Theirs ServedLayout
	Worker       int64
	Owner        string
}

func (e *LayoutError) Error() string {
	if e.Ours.IsDefault() {
		return fmt.Sprintf("the default layout of %s is %s here, but callers who name no layout had IDs of %s (worker ID %d, %s), and the two would collide: "+
			"keep that default layout and have callers name the new one, or begin a new ID space with another registry",
			strings.TrimPrefix(e.Ours.Name, defaultMark), describe(e.Ours), describe(e.Theirs), e.Worker, ownerName(e.Owner))
	}
	return fmt.Sprintf("layout %q is %s here, but IDs were issued under that name as %s (worker ID %d, %s), and the two would collide: give the new layout another name",
		e.Ours.Name, describe(e.Ours), describe(e.Theirs), e.Worker, ownerName(e.Owner))
}

func describe(l ServedLayout) string {
	return fmt.Sprintf("%d/%d/%d bits of %v from %s", l.TimeBits, l.WorkerBits, l.SequenceBits,
		time.Duration(l.Tick)*time.Millisecond, time.UnixMilli(l.Epoch).UTC().Format(time.RFC3339Nano))
}

// mergeLayouts returns the layouts of a record with ours added, by name.
func mergeLayouts(recorded, ours []ServedLayout) []ServedLayout {
	all := slices.Concat(recorded, ours)
	slices.SortStableFunc(all, byName)
	return slices.CompactFunc(all, func(a, b ServedLayout) bool { return a.Name == b.Name })
}

func byName(a, b ServedLayout) int { return strings.Compare(a.Name, b.Name) }
