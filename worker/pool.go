package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
)

// Bounds of a [Pool].
const (
	DefaultTTL     = 5 * time.Minute
	MaxTTL         = 24 * time.Hour
	minTTL         = time.Second
	maxPoolBits    = 31
	poolShift      = 32
	poolDefinition = 1<<poolShift - 1 // the cell of a pool's definition; no worker ID is so large
)

// The errors of pools.
var (
	// ErrNoPool: the registry has no pool of this name.
	ErrNoPool = errors.New("no such pool of worker IDs")

	// ErrPoolExists: the registry has a pool of this name with other values.
	ErrPoolExists = errors.New("the pool exists with other values")

	// ErrLeaseLost: the record does not show the lease, or its renewal came too late to count. The
	// program may issue the times below its limit, and has to claim again.
	ErrLeaseLost = errors.New("the lease is over for the registry: use it up to its limit, and claim another one")
)

// A Pool is a set of worker IDs for programs with a generator of their own. Its values never change,
// because the IDs of the pool are unique only as long as all its programs have the same layout.
type Pool struct {
	Name   string
	Layout ServedLayout // without a name

	// MaxTTL is the longest lease of a program; default 10 minutes, at most [MaxTTL].
	MaxTTL time.Duration

	// ClaimDelay is how long a claim waits after the registry may have lost writes: at least MaxTTL
	// and the tolerance between clocks, which is the default.
	ClaimDelay time.Duration
}

const defaultMaxTTL = 10 * time.Minute

var poolName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$`)
})

// filled returns l without its name, and with all 63 bits if it has no time bits.
func (l ServedLayout) filled() ServedLayout {
	l.Name = ""
	if l.TimeBits == 0 {
		l.TimeBits = 63 - l.WorkerBits - l.SequenceBits
	}
	return l
}

// checkTime returns an error that wraps [leaf.ErrInvalid] unless l has an ID for the time t.
func (l ServedLayout) checkTime(t time.Time) error {
	ticks := (t.UnixMilli() - l.Epoch) / l.Tick
	switch {
	case t.UnixMilli() < l.Epoch:
		return fmt.Errorf("%w: the epoch %s is in the future", leaf.ErrInvalid, time.UnixMilli(l.Epoch).UTC().Format(time.RFC3339))
	case ticks>>l.TimeBits > 0:
		end := time.UnixMilli(l.Epoch + l.Tick<<l.TimeBits).UTC().Format(time.RFC3339)
		return fmt.Errorf("%w: the layout has %d time bits, so its last ID is of %s", leaf.ErrInvalid, l.TimeBits, end)
	}
	return nil
}

// complete returns p with its defaults, or an error that wraps [leaf.ErrInvalid].
func (p Pool) complete(tolerance time.Duration) (Pool, error) {
	p.Layout = p.Layout.filled()
	l := p.Layout
	if p.MaxTTL == 0 {
		p.MaxTTL = max(defaultMaxTTL, min(p.ClaimDelay-tolerance, MaxTTL))
	}
	if p.ClaimDelay == 0 {
		p.ClaimDelay = p.MaxTTL + tolerance
	}
	p.MaxTTL, p.ClaimDelay = p.MaxTTL.Truncate(time.Millisecond), p.ClaimDelay.Truncate(time.Millisecond)
	switch {
	case !poolName().MatchString(p.Name):
		return p, fmt.Errorf("%w: a pool's name has 1 to 128 letters, digits and the characters - . _", leaf.ErrInvalid)
	case l.WorkerBits < 1 || l.WorkerBits > maxPoolBits:
		return p, fmt.Errorf("%w: a pool has 1 to %d worker bits, not %d", leaf.ErrInvalid, maxPoolBits, l.WorkerBits)
	case l.SequenceBits < 0 || l.TimeBits < 1 || l.TimeBits+l.WorkerBits+l.SequenceBits > 63:
		return p, fmt.Errorf("%w: %d time, %d worker and %d sequence bits are more than 63", leaf.ErrInvalid, l.TimeBits, l.WorkerBits, l.SequenceBits)
	case l.Tick < 1:
		return p, fmt.Errorf("%w: a tick of %d ms", leaf.ErrInvalid, l.Tick)
	case p.MaxTTL < minTTL || p.MaxTTL > MaxTTL:
		return p, fmt.Errorf("%w: a longest TTL of %v: it must be %v to %v", leaf.ErrInvalid, p.MaxTTL, minTTL, MaxTTL)
	case p.ClaimDelay < p.MaxTTL+tolerance:
		return p, fmt.Errorf("%w: a claim delay of %v: leases of %v need at least %v", leaf.ErrInvalid, p.ClaimDelay, p.MaxTTL, p.MaxTTL+tolerance)
	}
	return p, nil
}

// InPool reports whether r is in a cell of a pool; the others are those of servers.
func (r Record) InPool() bool { return inPool(r.Worker) }

// inPool reports whether a cell of a registry is a pool's.
func inPool(cell int64) bool { return cell>>poolShift > 0 }

// Pools leases the worker IDs of pools to programs, through any number of servers: a Pools remembers
// nothing about them. The pools share the cells of a [Registry] with its servers' worker IDs. The
// package documentation has the protocol. The methods are safe for concurrent use.
type Pools struct {
	reg  Registry
	opts Options
}

// NewPools returns the pools of a registry. It uses Owner, Clock, CallTimeout, Tolerance, Extend,
// a negative ClaimDelay and Logger of opts, as a [Keeper] does. The error wraps
// [leaf.ErrUnsupported] if the registry assigns its worker IDs by other rules.
func NewPools(reg Registry, opts *Options) (*Pools, error) {
	if _, ok := reg.(Assigner); ok {
		return nil, fmt.Errorf("%w: its worker IDs are not leased", leaf.ErrUnsupported)
	}
	return &Pools{reg: reg, opts: opts.withDefaults()}, nil
}

// keeper returns a keeper for one call, which sees all cells.
func (p *Pools) keeper(holder string) *Keeper {
	o := p.opts
	o.Owner, o.Health = p.opts.Owner+leaseOf+holder, nil
	k := &Keeper{reg: p.reg, opts: o, log: o.Logger, clock: NewClockFrom(o.Clock.wall, o.Clock.mono), pools: true}
	k.losses.Keeper = k
	return k
}

// leaseOf is between the server and the holder in [Record.Owner].
const leaseOf = " lease of "

// holderOf returns the holder as the owner names it.
func holderOf(owner string) string {
	_, holder, _ := strings.Cut(owner, leaseOf)
	return holder
}

// Create creates a pool and returns it as it then is. A pool with the same values may exist; one
// with others is left alone, and the error wraps [ErrPoolExists]. The error wraps
// [leaf.ErrUnsupported] if claims would fail: the registry may lose writes, and does not name its
// incarnation.
func (p *Pools) Create(ctx context.Context, pool Pool) (Pool, error) {
	pool, err := pool.complete(p.opts.Tolerance)
	if err != nil {
		return Pool{}, err
	}
	k := p.keeper("")
	for range maxRivals {
		v, err := k.readAll(ctx)
		if err = cmp.Or(err, v.epoch.checkPools()); err != nil {
			return Pool{}, err
		}
		found, _, err := find(v, pool.Name)
		switch {
		case err == nil && found == pool:
			return found, nil
		case err == nil:
			return Pool{}, fmt.Errorf("%w: %q", ErrPoolExists, pool.Name)
		}
		if err := pool.Layout.checkTime(v.registry); err != nil {
			return Pool{}, err
		}
		old := v.record(firstFree(v)<<poolShift | poolDefinition)
		next := Record{Worker: old.Worker, Instance: NewInstance(), Term: 1, Horizon: v.registry, Pool: pool}
		_, err = k.place(ctx, bid{old, next})
		if !errors.Is(err, ErrConflict) {
			return pool, err
		}
	}
	return Pool{}, fmt.Errorf("create pool %q: %w", pool.Name, ErrConflict)
}

// firstFree returns the lowest number without a pool.
func firstFree(v view) int64 {
	n := int64(1)
	for !v.records[n<<poolShift|poolDefinition].IsZero() {
		n++
	}
	return n
}

// find returns a pool and its number.
func find(v view, name string) (Pool, int64, error) {
	for cell, r := range v.records {
		if r.Pool.Name == name && cell&poolDefinition == poolDefinition && inPool(cell) {
			return r.Pool, cell >> poolShift, nil
		}
	}
	return Pool{}, 0, fmt.Errorf("%w: %q", ErrNoPool, name)
}

// List returns all pools, by name.
func (p *Pools) List(ctx context.Context) ([]Pool, error) {
	v, err := p.keeper("").readAll(ctx)
	if err != nil {
		return nil, err
	}
	var pools []Pool
	for _, r := range v.records {
		if r.Pool != (Pool{}) {
			pools = append(pools, r.Pool)
		}
	}
	slices.SortFunc(pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return pools, nil
}

// A PoolWorker is a worker ID of a pool that a program has, or had.
type PoolWorker struct {
	Worker int64
	Held   bool
	Holder string    // as the program has named itself
	Term   int64     // how often the worker ID was claimed
	Limit  time.Time // end of the lease, or the floor of the next one
	Seen   time.Time // the last claim or renewal, by the registry's clock
}

// Workers returns all worker IDs of a pool that programs ever claimed, by number.
func (p *Pools) Workers(ctx context.Context, name string) ([]PoolWorker, error) {
	v, err := p.keeper("").readAll(ctx)
	if err != nil {
		return nil, err
	}
	_, number, err := find(v, name)
	if err != nil {
		return nil, err
	}
	var list []PoolWorker
	for cell, r := range v.records {
		if cell>>poolShift == number && r.Pool == (Pool{}) {
			list = append(list, PoolWorker{cell & poolDefinition, r.Held(), holderOf(r.Owner), r.Term, r.Horizon, r.Seen})
		}
	}
	slices.SortFunc(list, func(a, b PoolWorker) int { return int(a.Worker - b.Worker) })
	return list, nil
}
