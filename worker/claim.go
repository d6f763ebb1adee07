package worker

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// maxRivals is how many candidates are lost to others before a claim reads the registry again.
const maxRivals = 16

// begin gets a lease: it hands back what is left of an earlier process, if that is
// known to be dead, and claims a worker ID; or it goes on with the earlier lease
// where the registry cannot be asked.
func (k *Keeper) begin(ctx context.Context) (*heldLease, error) {
	k.clock.anchor() // no lease is held: a clock that was set is believed, and checked
	v, err := k.readAll(ctx)
	if err != nil {
		if t := k.resume(); t != nil {
			k.log.Warn("the worker registry cannot be asked; going on with the lease in the state file", "worker", t.record.Worker, "until", Time(t.horizon.Load()), "err", err)
			return t, nil
		}
		return nil, fmt.Errorf("ask the worker registry: %w", err)
	}
	if err := k.handBack(ctx, v); err != nil {
		return nil, err
	}
	if err := k.checkClock(v); err != nil {
		return nil, err
	}
	if err := k.checkLayouts(v.records); err != nil {
		return nil, err
	}
	return k.claim(ctx, v)
}

// resume returns a heldLease from the state file alone, nil if it must not: its process
// must be known to be dead, since two processes would issue under one lease. Until the
// registry has agreed again it reaches no further than is safe whatever was lost.
func (k *Keeper) resume() *heldLease {
	s := k.saved
	if s == nil || s.Ended || s.sealed || !k.opts.State.proven(s) || s.Worker > k.max || !slices.Equal(s.Layouts, k.opts.Layouts) {
		return nil
	}
	limit := min(s.Horizon, s.Safe)
	if max(k.clock.ms(), s.Mark) >= limit {
		return nil
	}
	k.saved = nil
	record := Record{Worker: s.Worker, Instance: s.Instance, Term: s.Term, Horizon: s.Horizon, Layouts: s.Layouts}
	prior := Record{Worker: s.Worker, Horizon: -1} // not known: whatever else is found, the lease is lost
	t := k.newHeldLease(record, prior, s.Mark)
	t.alone = true
	t.horizon.Store(limit)
	t.safe.Store(limit)
	return t
}

// handBack releases a lease that is no longer used at its mark: that in the state
// file, if its process is known to be dead, or the one that this process lost, which has
// sealed its generators. It is tried until the registry has let it go, or shows that it
// is another node's. The file says first that no process goes on from it: the release may
// arrive late.
func (k *Keeper) handBack(ctx context.Context, v view) error {
	s := k.saved
	if s == nil {
		return nil
	}
	old, ok := v.records[s.Worker]
	if !ok {
		old = Record{Worker: s.Worker}
	}
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
	k.stamp(&next, v.registry, v.own)
	err := k.call(ctx, func(ctx context.Context) error { return k.reg.Swap(ctx, old, next) })
	if err != nil {
		k.log.Debug("the worker ID that was held before is not handed back yet", "worker", s.Worker, "until", Time(old.Horizon), "err", err)
		return nil
	}
	if next.Term > old.Term {
		k.log.Error("the worker registry has lost writes: what this node issued is put back", "worker", s.Worker, "floor", Time(s.Mark))
		k.count(func(st *Status) { st.PutBacks++ })
	}
	k.saved = nil
	v.records[s.Worker] = next
	return nil
}

// released returns what is to stand in place of old when the lease s is handed back; not
// ok if it is left to run out, or is another node's by now.
func (k *Keeper) released(s *saved, old Record) (next Record, ok bool) {
	proven := k.opts.State.proven(s)
	switch {
	case !proven && !k.opts.Reclaim:
		k.log.Warn("the state file is a copy, or from before a restart of this machine, or cannot be told from one: its worker ID is left to run out", "worker", s.Worker, "until", Time(s.Horizon))
		return Record{}, false
	case !proven && old.Horizon != s.Horizon:
		k.log.Warn("the state file is out of date: its worker ID is left to run out", "worker", s.Worker, "until", Time(old.Horizon))
		return Record{}, false
	}
	next = old
	next.Instance = Instance{}
	switch {
	case old.Instance == s.Instance && old.Term == s.Term:
		next.Horizon = s.Mark
	case old.Term < s.Term && old.Horizon < s.Mark:
		next.Term, next.Horizon, next.Layouts = s.Term, s.Mark, mergeLayouts(old.Layouts, s.Layouts)
	default:
		return Record{}, false
	}
	return next, true
}

// claim takes a worker ID: the one that is assigned, or a free one.
func (k *Keeper) claim(ctx context.Context, v view) (*heldLease, error) {
	now := k.clock.ms()
	horizon := now + millis(k.opts.Horizon)
	if horizon > v.registry+2*millis(k.opts.Horizon) {
		return nil, fmt.Errorf("%w: it is %v ahead of the worker registry's, and a lease must not reach so far: set the clock",
			errClockOff, time.Duration(now-v.registry)*time.Millisecond)
	}
	if b := k.unsure; b != nil && b.won(v.records[b.next.Worker]) {
		k.unsure = nil
		return k.enter(v, *b, v.records[b.next.Worker]), nil
	}
	ids, err := k.candidates(ctx, v, min(now, v.registry))
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if i == maxRivals {
			break
		}
		bid := k.bid(v, id, horizon)
		if err := k.announce(bid); err != nil {
			return nil, err
		}
		got, err := k.swap(ctx, bid)
		if errors.Is(err, ErrConflict) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("claim worker ID %d: %w", id, err)
		}
		return k.enter(v, bid, got), nil
	}
	return nil, errors.New("other nodes were faster to claim every worker ID that was tried; trying again")
}

// announce has the state file know of a bid before it is made: a process that is killed
// then can hand back what it claimed, and one that cannot write claims nothing.
func (k *Keeper) announce(b bid) error {
	return k.opts.State.end(saved{
		Worker: b.next.Worker, Instance: b.next.Instance, Term: b.next.Term,
		Horizon: b.next.Horizon, Mark: b.old.Horizon, Layouts: k.opts.Layouts,
	})
}

// enter begins the heldLease of a bid that was successful. Where the registry may lose
// writes it counts only from a floor ahead: by then a holder whose record was lost
// has noticed.
func (k *Keeper) enter(v view, b bid, got Record) *heldLease {
	floor := b.old.Horizon
	if v.forgets {
		floor = max(floor, k.now(v)+millis(k.opts.ClaimDelay))
	}
	t := k.newHeldLease(got, b.old, floor)
	t.safe.Store(k.safeUntil(v, got))
	return t
}

// safeUntil returns the time before which no other node is given one, even if the registry
// has lost r since it was written: who claims the worker ID then begins ClaimDelay beyond
// the clock of the registry, which is behind the one of then, or this machine's, by no
// more than is tolerated.
func (k *Keeper) safeUntil(v view, r Record) int64 {
	if !v.forgets {
		return r.Horizon
	}
	written := min(r.Seen, r.Seen+r.Offset) // by the registry's clock, and by ours
	return min(r.Horizon, written+millis(k.opts.ClaimDelay-k.opts.Tolerance))
}

// A bid is one attempt to claim a worker ID. Its outcome may be unknown; only it has
// the instance in next, so that it may be repeated as it is, and told from all others.
type bid struct{ old, next Record }

// bid returns the bid for a worker ID: the one before, if it is unknown whether that
// was successful and nothing speaks against it.
func (k *Keeper) bid(v view, id, horizon int64) bid {
	old, ok := v.records[id]
	if !ok {
		old = Record{Worker: id}
	}
	if b := k.unsure; b != nil && b.old.Equal(old) && b.next.Horizon > k.clock.ms()+millis(k.opts.Horizon)/2 {
		return *b
	}
	next := Record{Worker: id, Instance: NewInstance(), Term: old.Term + 1, Horizon: horizon, Layouts: mergeLayouts(old.Layouts, k.opts.Layouts)}
	k.stamp(&next, v.registry, v.own)
	return bid{old, next}
}

// swap makes a bid and finds out what became of it. The error wraps [ErrConflict] if
// another node was faster.
func (k *Keeper) swap(ctx context.Context, b bid) (Record, error) {
	k.unsure = nil
	err := k.call(ctx, func(ctx context.Context) error { return k.reg.Swap(ctx, b.old, b.next) })
	if err == nil {
		return b.next, nil
	}
	found, lerr := k.load(ctx, b.old.Worker)
	switch {
	case lerr != nil:
		err = lerr
	case b.won(found):
		return found, nil
	case errors.Is(err, ErrConflict), !found.Equal(b.old):
		return Record{}, fmt.Errorf("%w: %w", ErrConflict, err)
	}
	k.unsure = &b
	return Record{}, err
}

// won reports whether r is what the bid was to write.
func (b bid) won(r Record) bool { return r.Instance == b.next.Instance && r.Term == b.next.Term }

// load returns the record of a worker.
func (k *Keeper) load(ctx context.Context, worker int64) (r Record, err error) {
	err = k.call(ctx, func(ctx context.Context) error {
		r, err = k.reg.Load(ctx, worker)
		return err
	})
	return r, err
}

// candidates returns the worker IDs that may be claimed at the time now, the best
// first: handed back or never used before run out, and low ones before high ones.
func (k *Keeper) candidates(ctx context.Context, v view, now int64) ([]int64, error) {
	if a, ok := k.reg.(Assigner); ok {
		return k.assigned(ctx, a, v, now)
	}
	var free, expired []int64
	earliest := int64(math.MaxInt64)
	for id := range k.max + 1 {
		r := v.records[id]
		switch {
		case r.Horizon > now:
			earliest = min(earliest, r.Horizon)
		case r.Held():
			expired = append(expired, id)
		default:
			free = append(free, id)
		}
		if len(free) > 2*maxRivals {
			break
		}
	}
	ids := append(free, expired...)
	if len(ids) == 0 {
		return nil, &noneFree{earliest, fmt.Errorf("%w: all %d worker IDs are in use; the first lease runs out at %s, unless it is extended",
			ErrNoneFree, k.max+1, Time(earliest).UTC().Format(time.RFC3339))}
	}
	rest := ids[1:min(len(ids), 2*maxRivals)] // the first for all alike; after a lost race, not the same for all
	rand.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	return ids, nil
}

// noneFree says that there is no worker ID to claim before some time.
type noneFree struct {
	until int64
	error
}

func (e *noneFree) Unwrap() error { return e.error }

func (k *Keeper) assigned(ctx context.Context, a Assigner, v view, now int64) ([]int64, error) {
	var id int64
	err := k.call(ctx, func(ctx context.Context) (err error) {
		id, err = a.Assign(ctx, k.max)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get the worker ID that is assigned to this node: %w", err)
	}
	if r := v.records[id]; r.Horizon > now {
		why := ErrNoneFree
		if r.Horizon > now+2*millis(k.opts.Horizon) { // further than a claim by this clock
			why = ErrFarAhead
		}
		return nil, &noneFree{r.Horizon, fmt.Errorf("%w: worker ID %d is assigned to this node, but times up to %s may have been issued under it by %s: waiting until then",
			why, id, Time(r.Horizon).UTC().Format(time.RFC3339Nano), ownerName(r.Owner))}
	}
	return []int64{id}, nil
}

func ownerName(owner string) string {
	if owner == "" {
		return "an unknown node"
	}
	return owner
}

// confirm makes a claim good before its first time is issued: the state file has it,
// the registry has not lost it, and no other node serves a layout of the same name with
// other values. Of two such nodes that claim at the same time at least one sees the
// other here. On a failure the caller gives the claim up.
func (t *heldLease) confirm(ctx context.Context) error {
	if t.alone {
		return nil
	}
	if err := t.save(); err != nil {
		return err
	}
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		v, err := t.readAll(ctx)
		if err == nil {
			return errors.Join(t.checkClaim(v.records), t.checkLayouts(v.records))
		}
		err = fmt.Errorf("ask the worker registry: %w", err)
		if t.clock.ms() > t.record.Horizon-millis(t.opts.Horizon)/2 {
			return err
		}
		t.reportNoLease(err)
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// checkClaim reports that the registry does not hold the claim any more.
func (t *heldLease) checkClaim(records map[int64]Record) error {
	found := records[t.record.Worker]
	if found.Instance != t.record.Instance || found.Term != t.record.Term {
		return fmt.Errorf("%w: the worker registry does not hold the claim of worker ID %d any more: it has term %d, of %s; claiming again",
			ErrTaken, t.record.Worker, found.Term, ownerName(found.Owner))
	}
	return nil
}

// checkLayouts reports a layout of ours that any record has under other values: the
// IDs of one name would not be unique.
func (k *Keeper) checkLayouts(records map[int64]Record) error {
	for _, ours := range k.opts.Layouts {
		for _, r := range records {
			i := slices.IndexFunc(r.Layouts, func(l ServedLayout) bool { return l.Name == ours.Name })
			if i >= 0 && r.Layouts[i] != ours {
				return &LayoutError{Ours: ours, Theirs: r.Layouts[i], Worker: r.Worker, Owner: r.Owner}
			}
		}
	}
	return nil
}

// A LayoutError says that a layout's name is taken: IDs were issued under it with
// other values.
type LayoutError struct {
	Ours, Theirs ServedLayout
	Worker       int64
	Owner        string
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("layout %q is %s here, but IDs were issued under that name as %s (worker ID %d, %s), and the two would collide: give the new layout another name",
		e.Ours.Name, describe(e.Ours), describe(e.Theirs), e.Worker, ownerName(e.Owner))
}

func describe(l ServedLayout) string {
	return fmt.Sprintf("%d/%d/%d bits of %v from %s", l.TimeBits, l.WorkerBits, l.SequenceBits,
		time.Duration(l.Tick)*time.Millisecond, time.UnixMilli(l.Epoch).UTC().Format(time.RFC3339Nano))
}

// mergeLayouts returns the layouts of a record with ours added, by name.
func mergeLayouts(recorded, ours []ServedLayout) []ServedLayout {
	all := slices.Clone(recorded)
	for _, l := range ours {
		i, found := slices.BinarySearchFunc(all, l.Name, func(l ServedLayout, name string) int { return strings.Compare(l.Name, name) })
		if !found {
			all = slices.Insert(all, i, l)
		}
	}
	return all
}
