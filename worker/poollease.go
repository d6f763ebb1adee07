package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
)

// maxHolder bounds the name of a holder, in bytes.
const maxHolder = 200

// A PoolLease is the right of one program to issue the times from Floor up to, not including, Limit
// under a worker ID of a pool.
type PoolLease struct {
	Pool         Pool
	Worker       int64
	Floor, Limit time.Time
	Now          time.Time // by the registry's clock; the program's own does not matter

	cell   int64
	secret Instance
}

// ID returns the text by which the program renews and releases the lease. Any program that has it
// can do so.
func (l *PoolLease) ID() string { return strconv.FormatInt(l.cell, 36) + "-" + l.secret.String() }

// RenewAt returns when to renew the lease, by the registry's clock: after a third of its time.
func (l *PoolLease) RenewAt() time.Time { return l.Now.Add(l.Limit.Sub(l.Now) / 3) }

// parseLease reads the result of [PoolLease.ID].
func parseLease(id string) (cell int64, secret Instance, err error) {
	number, digits, _ := strings.Cut(id, "-")
	cell, err = strconv.ParseInt(number, 36, 64)
	if err == nil {
		err = secret.UnmarshalText([]byte(digits))
	}
	if err != nil || secret.IsZero() || !inPool(cell) || cell&poolDefinition == poolDefinition {
		return 0, Instance{}, fmt.Errorf("%w: malformed lease", leaf.ErrInvalid)
	}
	return cell, secret, nil
}

// A PoolClaim asks for a lease.
type PoolClaim struct {
	Pool   string        // its name
	TTL    time.Duration // 0: [DefaultTTL], or the pool's MaxTTL if that is shorter
	Holder string        // the program, for people
	Layout ServedLayout  // if set: the program's idea of the pool's layout
}

// Claim leases a free worker ID of a pool to a program. The error wraps [ErrNoPool],
// [ErrPoolExists] if the pool has another layout, [ErrNoneFree] if all worker IDs are leased,
// [ErrWaiting] if the registry may have lost a lease, and [leaf.ErrInvalid]. After other errors the
// worker ID may be taken up to its limit.
func (p *Pools) Claim(ctx context.Context, c PoolClaim) (PoolLease, error) {
	if len(c.Holder) > maxHolder {
		return PoolLease{}, fmt.Errorf("%w: a holder has at most %d bytes", leaf.ErrInvalid, maxHolder)
	}
	k := p.keeper(strings.ToValidUTF8(c.Holder, "?"))
	v, err := k.readAll(ctx)
	if err != nil {
		return PoolLease{}, err
	}
	pool, number, err := find(v, c.Pool)
	if err != nil {
		return PoolLease{}, err
	}
	if c.Layout != (ServedLayout{}) && c.Layout.filled() != pool.Layout {
		return PoolLease{}, fmt.Errorf("%w: pool %q has %s, not %s", ErrPoolExists, c.Pool, describe(pool.Layout), describe(c.Layout))
	}
	limit, err := k.limit(v, pool, c.TTL)
	if err != nil {
		return PoolLease{}, err
	}
	ids, err := k.poolCandidates(v, pool, number)
	if err != nil {
		return PoolLease{}, err
	}
	for _, cell := range ids {
		old := v.record(cell)
		next := Record{Worker: cell, Instance: NewInstance(), Term: old.Term + 1, Horizon: limit,
			Floor: later(k.poolFloor(v, pool, old), v.registry.Add(-k.opts.Tolerance))} // a restored backup does not know of the leases since
		k.stamp(&next, v)
		got, err := k.place(ctx, bid{old, next})
		switch {
		case err == nil:
			return k.grant(ctx, v, pool, bid{old, next}, got)
		case !errors.Is(err, ErrConflict):
			return PoolLease{}, fmt.Errorf("claim a worker ID of pool %q: %w", c.Pool, err)
		}
	}
	return PoolLease{}, fmt.Errorf("claim a worker ID of pool %q: %w: others were faster", c.Pool, ErrConflict)
}

// limit returns the end of a lease that begins or is renewed at the time of v.
func (k *Keeper) limit(v view, pool Pool, ttl time.Duration) (time.Time, error) {
	if ttl == 0 {
		ttl = min(DefaultTTL, pool.MaxTTL)
	}
	if ttl < minTTL || ttl > pool.MaxTTL {
		return time.Time{}, fmt.Errorf("%w: a TTL of %v: pool %q has leases of %v to %v", leaf.ErrInvalid, ttl, pool.Name, minTTL, pool.MaxTTL)
	}
	if err := cmp.Or(k.checkOffset(v.offset, "the worker registry's"), v.epoch.checkPools()); err != nil {
		return time.Time{}, err
	}
	if v.epoch.Lossy {
		if ttl = min(ttl, pool.ClaimDelay-k.opts.Tolerance); ttl < minTTL {
			return time.Time{}, fmt.Errorf("%w: the claim delay of pool %q, %v, is too short for a server that tolerates clocks that differ by %v",
				leaf.ErrUnsupported, pool.Name, pool.ClaimDelay, k.opts.Tolerance)
		}
	}
	return k.startOf(v).Add(ttl).Truncate(time.Millisecond), nil
}

// checkPools reports, wrapping [leaf.ErrUnsupported], why a registry cannot have pools.
func (e ServerEpoch) checkPools() error {
	if e.Lossy && e.Incarnation == "" {
		return fmt.Errorf("%w: the worker registry may lose writes and does not tell which server answers, so it has no pools: "+
			"use another registry, or set claim_delay of this one to 0 if it loses none", leaf.ErrUnsupported)
	}
	return nil
}

// startOf returns the time from which a lease may be given: the earliest that it may be. The clock of the
// server that takes over after a loss may be behind this machine's by the tolerance.
func (k *Keeper) startOf(v view) time.Time {
	if v.epoch.Lossy {
		return v.registry.Add(min(0, v.offset) - v.late)
	}
	return v.registry.Add(-v.late)
}

// poolCandidates returns cells of a pool that may be claimed, in an order of this call.
func (k *Keeper) poolCandidates(v view, pool Pool, number int64) ([]int64, error) {
	ids, first := unused(v, number<<poolShift, pool.Layout.MaxWorker(), k.startOf(v), 0)
	if len(ids) == 0 {
		return nil, &notYet{first, fmt.Errorf("%w: all %d of pool %q are leased; the first lease ends at %s, unless it is renewed",
			ErrNoneFree, pool.Layout.MaxWorker()+1, pool.Name, first.UTC().Format(time.RFC3339))}
	}
	ids = ids[:min(len(ids), maxRivals)]
	rand.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	return ids, nil
}

// poolFloor returns the floor of a claim that replaces old: on a registry that may lose writes also
// a time by which every lost lease has ended.
func (k *Keeper) poolFloor(v view, pool Pool, old Record) time.Time {
	if !v.epoch.Lossy {
		return old.Horizon
	}
	return later(old.Horizon, k.losses.epochSince(v).Add(pool.ClaimDelay))
}

// grant returns the lease of a successful claim. It asks for the incarnation after the swap: one
// before may have ended. A lease that cannot be used yet goes back, unknown to any program.
func (k *Keeper) grant(ctx context.Context, v view, pool Pool, b bid, got Record) (PoolLease, error) {
	after, err := v, error(nil)
	if _, ok := k.reg.(LossyRegistry); ok {
		after, err = k.readClock(ctx)
		after.records = v.records
	}
	floor := k.poolFloor(after, pool, b.old)
	if err == nil && !floor.After(got.Floor) && !floor.After(k.startOf(after)) {
		return lease(pool, got, b.next.Horizon, k.now(after)), nil
	}
	back := got
	back.Instance, back.Horizon = Instance{}, b.old.Horizon
	if _, backErr := k.swap(ctx, got, back); backErr != nil {
		k.log.Debug("a worker ID that no program has is taken up to its limit", "pool", pool.Name, "err", backErr)
	}
	if err != nil {
		return PoolLease{}, err
	}
	return PoolLease{}, &notYet{floor, fmt.Errorf("%w: pool %q has leases from %s on: the registry may have lost some that last until then",
		ErrWaiting, pool.Name, floor.UTC().Format(time.RFC3339))}
}

// lease returns the program's view of its record. A repeated write may have moved the horizon
// beyond the limit.
func lease(pool Pool, r Record, limit, now time.Time) PoolLease {
	return PoolLease{pool, r.Worker & poolDefinition, r.Floor, limit, now, r.Worker, r.Instance}
}

// held returns the pool and the record of a lease, or [ErrLeaseLost].
func (k *Keeper) held(ctx context.Context, id string) (pool Pool, r Record, err error) {
	cell, secret, err := parseLease(id)
	if err != nil {
		return Pool{}, Record{}, err
	}
	definition, err := k.load(ctx, cell|poolDefinition)
	if err != nil {
		return Pool{}, Record{}, err
	}
	if r, err = k.load(ctx, cell); err == nil && (r.Instance != secret || definition.Pool == Pool{}) {
		err = ErrLeaseLost
	}
	return definition.Pool, r, err
}

// Renew moves the limit of a lease to ttl from now, and never back. It always writes. The error
// wraps [ErrLeaseLost] if the lease is over for the registry. After other errors the renewal may
// have happened, and may be repeated.
func (p *Pools) Renew(ctx context.Context, id string, ttl time.Duration) (PoolLease, error) {
	r := renewal{Keeper: p.keeper(""), id: id, ttl: ttl}
	l, sent, first := r.write(ctx)
	if !sent {
		return l, first
	}
	// The outcome of the swap is unknown. Only a second one counts, which the registry has
	// acknowledged: it may lose a write that only a read has shown.
	l, _, err := r.write(ctx)
	if err != nil && !errors.Is(err, ErrLeaseLost) {
		err = errors.Join(first, err)
	}
	return l, err
}

// A renewal is one call of [Pools.Renew].
type renewal struct {
	*Keeper
	id    string
	ttl   time.Duration
	limit time.Time // of the lease before the first write
}

// write reads the lease and writes it with a later limit. If sent, the swap was, and the error is
// its own.
func (r *renewal) write(ctx context.Context) (l PoolLease, sent bool, err error) {
	pool, old, err := r.held(ctx, r.id)
	if err != nil {
		return l, false, err
	}
	again := !r.limit.IsZero()
	if !again {
		r.limit = old.Horizon
		r.opts.Owner += holderOf(old.Owner)
	}
	v, err := r.readFor(ctx, old)
	if err != nil {
		return l, false, err
	}
	limit, err := r.Keeper.limit(v, pool, r.ttl)
	if err == nil {
		err = r.counts(v, old)
	}
	if err != nil {
		return l, false, err
	}
	next := old
	next.Horizon = later(old.Horizon, limit)
	if again {
		next.Horizon = later(old.Horizon.Add(time.Millisecond), limit)
	}
	r.stamp(&next, v)
	got, err := r.swap(ctx, old, next)
	if err != nil {
		return l, true, err
	}
	if _, ok := r.reg.(LossyRegistry); ok { // the earlier server may have ended
		v, err = r.readClock(ctx)
	}
	if err == nil {
		err = r.counts(v, got)
	}
	return lease(pool, got, got.Horizon, r.now(v)), false, err
}

// readFor reads the registry's clock and server for a renewal of old. The age of a server that may
// have had successors shows in all records.
func (r *renewal) readFor(ctx context.Context, old Record) (view, error) {
	v, err := r.readClock(ctx)
	switch {
	case err != nil:
	case v.epoch.Lossy && v.epoch.Untracked:
		return r.readAll(ctx)
	default:
		v.records = map[int64]Record{old.Worker: old}
		r.losses.noteEpoch(v)
	}
	return v, err
}

// counts reports why a renewal does not count that reads, or has written, the record. After its
// limit another program may have had the worker ID, and the registry does not know of that any more
// after a fail-over, or after a restore from a backup.
func (r *renewal) counts(v view, record Record) error {
	now := r.latest(v)
	if v.epoch.Lossy && v.epoch.Untracked {
		now = now.Add(r.opts.Tolerance)
	}
	switch {
	case v.epoch.Lossy && record.Incarnation != v.epoch.Incarnation:
		return fmt.Errorf("%w: another server of the registry has taken over", ErrLeaseLost)
	case !now.Before(r.limit):
		return fmt.Errorf("%w: the renewal came too late", ErrLeaseLost)
	}
	return nil
}

// Release ends a lease. Used is the latest time in an issued ID; the zero Time without an issued ID. The
// program has stopped its generator before. The next lease of the worker ID begins above used. The
// error wraps [ErrLeaseLost] if the lease is over, and [leaf.ErrInvalid] if used is not below its
// limit. After other errors the worker ID may be taken up to its limit.
func (p *Pools) Release(ctx context.Context, id string, used time.Time) error {
	k := p.keeper("")
	for range 2 { // a renewal may come first
		_, old, err := k.held(ctx, id)
		if err != nil {
			return err
		}
		if !used.Before(old.Horizon) {
			return fmt.Errorf("%w: used is %d ms, not below the limit of the lease", leaf.ErrInvalid, used.UnixMilli())
		}
		next := old
		next.Instance, next.Horizon = Instance{}, old.Floor
		if !used.IsZero() {
			next.Horizon = later(old.Floor, milliUp(used.Add(time.Millisecond)))
		}
		if _, err = k.swap(ctx, old, next); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return ErrConflict
}
