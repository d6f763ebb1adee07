package worker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

const (
	poolTTL   = 10 * time.Second
	poolDelay = poolTTL + worker.DefaultTolerance
)

// orders is a pool of two worker IDs.
func orders() worker.Pool {
	return worker.Pool{Name: "orders", MaxTTL: poolTTL, Layout: worker.ServedLayout{Tick: 1, WorkerBits: 1, SequenceBits: 12}}
}

// A broker is a server that leases worker IDs of pools.
type broker struct {
	*worker.Pools
	node *node
}

// broker starts one on n.
func (n *node) broker(t testing.TB) broker {
	p := &process{node: n, name: n.name, dead: make(chan struct{})}
	clock := worker.NewClockFrom(func() time.Time { return time.Now().Add(time.Duration(n.skew.Load())) }, monotonic())
	pools, err := worker.NewPools(&port{p}, &worker.Options{Owner: n.name, CallTimeout: time.Second, Extend: 2 * time.Second, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	return broker{pools, n}
}

func monotonic() func() time.Duration {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// inPoolBubble is a world with a pool and brokers.
func inPoolBubble(t *testing.T, nodes int, test func(t *testing.T, w *world, brokers []broker)) {
	t.Helper()
	inBubble(t, nodes, func(t *testing.T, w *world) {
		w.reg.Backend.SetClock(time.Now)
		var brokers []broker
		for _, n := range w.nodes {
			brokers = append(brokers, n.broker(t))
		}
		if _, err := brokers[0].Create(t.Context(), orders()); err != nil {
			t.Fatal(err)
		}
		test(t, w, brokers)
	})
}

// A program leases a worker ID. It issues all IDs that its lease allows, as fast as it can.
type program struct {
	w      *world
	name   string
	id     string
	lease  worker.PoolLease
	cursor int64 // the next free time
	used   time.Time
}

func (p *program) adopt(l worker.PoolLease) {
	if p.id != l.ID() {
		p.cursor, p.used = l.Floor.UnixMilli(), time.Time{}
	}
	p.id, p.lease = l.ID(), l
}

// issue issues up to n times of the lease, the first one at most ahead of the last.
func (p *program) issue(rng *rand.Rand, n int) (issued int) {
	limit := p.lease.Limit.UnixMilli()
	for ; p.id != "" && issued < n && p.cursor < limit; issued++ {
		at := p.cursor + rng.Int64N(limit-p.cursor)
		p.w.issue(p.lease.Worker, at, p.name)
		p.cursor, p.used = at+1, time.UnixMilli(at)
	}
	return issued
}

func claimFrom(t *testing.T, b broker, holder string) worker.PoolLease {
	t.Helper()
	l, err := b.Claim(t.Context(), worker.PoolClaim{Pool: "orders", TTL: poolTTL, Holder: holder})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func isError(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", what, err, want)
	}
}

func TestPools(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, _ *world, brokers []broker) {
		b, ctx := brokers[0], t.Context()
		if p, err := b.Create(ctx, orders()); err != nil || p.ClaimDelay != poolDelay || p.Layout.TimeBits != 50 {
			t.Errorf("the same again: %+v, %v", p, err)
		}
		other := orders()
		other.Layout.SequenceBits--
		_, err := b.Create(ctx, other)
		isError(t, "another layout under the name", err, worker.ErrPoolExists)
		other.Name = "invoices"
		if _, err := b.Create(ctx, other); err != nil {
			t.Error(err)
		}
		pools, err := b.List(ctx)
		if err != nil || len(pools) != 2 || pools[0].Name != "invoices" || pools[1].Name != "orders" {
			t.Errorf("%+v, %v", pools, err)
		}
		for what, change := range map[string]func(*worker.Pool){
			"no name":             func(p *worker.Pool) { p.Name = "" },
			"a name with a space": func(p *worker.Pool) { p.Name = "a b" },
			"no worker bits":      func(p *worker.Pool) { p.Layout.WorkerBits = 0 },
			"32 worker bits":      func(p *worker.Pool) { p.Layout.WorkerBits = 32 },
			"64 bits":             func(p *worker.Pool) { p.Layout.SequenceBits, p.Layout.TimeBits = 22, 41 },
			"no tick":             func(p *worker.Pool) { p.Layout.Tick = 0 },
			"a TTL of 25 h":       func(p *worker.Pool) { p.MaxTTL = 25 * time.Hour },
			"a TTL of 1 ms":       func(p *worker.Pool) { p.MaxTTL = time.Millisecond },
			"a layout that ended": func(p *worker.Pool) { p.Layout.SequenceBits = 60 },
			"a future epoch":      func(p *worker.Pool) { p.Layout.Epoch = time.Now().Add(time.Hour).UnixMilli() },
			"a short claim delay": func(p *worker.Pool) { p.ClaimDelay = p.MaxTTL },
		} {
			pool := orders()
			pool.Name = "x"
			change(&pool)
			_, err := b.Create(ctx, pool)
			isError(t, what, err, leaf.ErrInvalid)
		}
		first, second := claimFrom(t, b, "web-1"), claimFrom(t, b, "web-2")
		if first.Worker == second.Worker || first.Limit != first.Now.Add(poolTTL) || !first.Floor.Before(first.Now) {
			t.Errorf("%+v and %+v", first, second)
		}
		_, err = b.Claim(ctx, worker.PoolClaim{Pool: "orders"})
		isError(t, "a third one of two", err, worker.ErrNoneFree)
		_, err = b.Claim(ctx, worker.PoolClaim{Pool: "order"})
		isError(t, "a typo", err, worker.ErrNoPool)
		_, err = b.Claim(ctx, worker.PoolClaim{Pool: "orders", TTL: 2 * poolTTL})
		isError(t, "too long", err, leaf.ErrInvalid)
		_, err = b.Claim(ctx, worker.PoolClaim{Pool: "orders", Layout: other.Layout})
		isError(t, "another layout", err, worker.ErrPoolExists)
		workers, err := b.Workers(ctx, "orders")
		if err != nil || len(workers) != 2 || !workers[0].Held || !strings.HasPrefix(workers[0].Holder, "web-") {
			t.Errorf("%+v, %v", workers, err)
		}
		if workers, err := b.Workers(ctx, "invoices"); err != nil || len(workers) > 0 {
			t.Errorf("the other pool has %+v, %v", workers, err)
		}
		for _, id := range []string{"", "x", "1-" + strings.Repeat("0", 32), first.ID() + "0", "0-" + strings.Repeat("1", 32), "1z141z3-" + strings.Repeat("1", 32)} {
			_, err := b.Renew(ctx, id, 0)
			isError(t, "the lease "+id, err, leaf.ErrInvalid)
		}
	})
}

// The servers' own worker IDs and the pools do not see each other.
func TestPoolsBesideKeepers(t *testing.T) {
	inPoolBubble(t, 2, func(t *testing.T, w *world, brokers []broker) {
		l := claimFrom(t, brokers[0], "web-1")
		p := hold(t, w.nodes[1], 0)
		mustIssue(t, p, 100)
		if s := p.keeper.Status(); s.ClaimDelay > claimDelay {
			t.Errorf("the server waits for the pool's %v", s.ClaimDelay)
		}
		if _, err := brokers[0].Renew(t.Context(), l.ID(), 0); err != nil {
			t.Error(err)
		}
	})
}

func TestPoolNeedsRegistryThatLeases(t *testing.T) {
	static, err := worker.OpenStatic(new(emptyFile), 7, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = worker.NewPools(static, nil)
	isError(t, "a chosen worker ID", err, leaf.ErrUnsupported)
}

type emptyFile struct{ worker.File }

func (emptyFile) ReadAt([]byte, int64) (int, error) { return 0, nil }

func TestRelease(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
		b, ctx := brokers[0], t.Context()
		l := claimFrom(t, b, "web-1")
		isError(t, "used at the limit", b.Release(ctx, l.ID(), l.Limit), leaf.ErrInvalid)
		used := l.Now.Add(3 * time.Second).Truncate(time.Millisecond)
		if err := b.Release(ctx, l.ID(), used); err != nil {
			t.Fatal(err)
		}
		isError(t, "again", b.Release(ctx, l.ID(), used), worker.ErrLeaseLost)
		_, err := b.Renew(ctx, l.ID(), 0)
		isError(t, "a renewal afterwards", err, worker.ErrLeaseLost)
		claimFrom(t, b, "web-2") // the other worker ID; this one lies in the future
		time.Sleep(4 * time.Second)
		again := claimFrom(t, b, "web-3")
		if again.Worker != l.Worker || !again.Floor.Equal(used.Add(time.Millisecond)) {
			t.Errorf("got %+v, want floor %v", again, used)
		}
		if err := b.Release(ctx, again.ID(), time.Time{}); err != nil { // unused
			t.Fatal(err)
		}
		last := claimFrom(t, b, "web-4")
		if !last.Floor.Equal(again.Floor) {
			t.Errorf("an unused lease moved the floor from %v to %v", again.Floor, last.Floor)
		}
		if err := b.Release(ctx, last.ID(), last.Floor.Add(-time.Hour)); err != nil {
			t.Fatal(err)
		}
		if l := claimFrom(t, b, "web-5"); l.Floor.Before(last.Floor) {
			t.Errorf("a release went below the floor %v: %v", last.Floor, l.Floor)
		}
	})
}

// A server whose clock is off grants nothing, and says so.
func TestPoolClockOff(t *testing.T) {
	inPoolBubble(t, 2, func(t *testing.T, w *world, brokers []broker) {
		l := claimFrom(t, brokers[0], "web-1")
		w.nodes[1].skew.Store(int64(time.Minute))
		_, err := brokers[1].Claim(t.Context(), worker.PoolClaim{Pool: "orders"})
		isError(t, "claim", err, worker.ErrClockOff)
		_, err = brokers[1].Renew(t.Context(), l.ID(), 0)
		isError(t, "renew", err, worker.ErrClockOff)
	})
}

// After a fail-over no lease begins before every lost one has ended, and those of before are not
// renewed.
func TestPoolAfterFailOver(t *testing.T) {
	for _, untracked := range []bool{false, true} {
		inPoolBubble(t, 2, func(t *testing.T, w *world, brokers []broker) {
			w.lossy.Store(true)
			w.untracked.Store(untracked)
			time.Sleep(poolDelay)
			_, err := brokers[0].Claim(t.Context(), worker.PoolClaim{Pool: "orders"})
			isError(t, "nobody has stamped this server yet", err, worker.ErrWaiting)
			keepStamping(t, brokers[0], poolDelay)
			kept := claimFrom(t, brokers[0], "web-1")
			before := w.reg.Backend.Snapshot()
			lost := claimFrom(t, brokers[0], "web-2")
			w.failOver(before)
			_, err = brokers[1].Renew(t.Context(), kept.ID(), 0)
			isError(t, "renew", err, worker.ErrLeaseLost)
			_, err = brokers[1].Renew(t.Context(), lost.ID(), 0)
			isError(t, "renew what was lost", err, worker.ErrLeaseLost)
			_, err = brokers[1].Claim(t.Context(), worker.PoolClaim{Pool: "orders"})
			isError(t, "claim", err, worker.ErrWaiting)
			keepStamping(t, brokers[1], poolDelay)
			for range 2 {
				if l := claimFrom(t, brokers[1], "web-3"); l.Floor.Before(lost.Limit) || l.Floor.Before(kept.Limit) {
					t.Errorf("a lease from %v on; one lasted until %v", l.Floor, lost.Limit)
				}
			}
		})
	}
}

// A claim reads the registry and pauses. Another program has its worker ID meanwhile, and a fail-over
// loses that.
func TestPoolFailOverDuringClaim(t *testing.T) {
	inPoolBubble(t, 2, func(t *testing.T, w *world, brokers []broker) {
		w.lossy.Store(true)
		keepStamping(t, brokers[0], poolDelay)
		before := w.reg.Backend.Snapshot()
		w.plan(func(_, _ worker.Record) swapFault {
			w.fault.Store(nil)
			claimFrom(t, brokers[1], "web-1")
			claimFrom(t, brokers[1], "web-2")
			w.failOver(before)
			return swapWorks
		})
		l, err := brokers[0].Claim(t.Context(), worker.PoolClaim{Pool: "orders"})
		isError(t, fmt.Sprintf("a claim by the incarnation before: %+v", l), err, worker.ErrWaiting)
	})
}

// A server with another tolerance keeps to the pool's claim delay.
func TestPoolLimitByClaimDelay(t *testing.T) {
	inPoolBubble(t, 1, func(t *testing.T, w *world, brokers []broker) {
		w.lossy.Store(true)
		keepStamping(t, brokers[0], poolDelay)
		p := &process{node: w.nodes[0], dead: make(chan struct{})}
		pools, err := worker.NewPools(&port{p}, &worker.Options{Tolerance: poolDelay - 3*time.Second})
		if err != nil {
			t.Fatal(err)
		}
		l, err := pools.Claim(t.Context(), worker.PoolClaim{Pool: "orders", TTL: poolTTL})
		if err != nil || l.Limit.Sub(l.Now) != 3*time.Second {
			t.Errorf("a lease of %v, %v", l.Limit.Sub(l.Now), err)
		}
	})
}

// keepStamping has refused claims stamp the registry for so long.
func keepStamping(t *testing.T, b broker, d time.Duration) {
	for begin := time.Now(); time.Since(begin) <= d; time.Sleep(time.Second) {
		if l, err := b.Claim(t.Context(), worker.PoolClaim{Pool: "orders"}); err == nil {
			_ = b.Release(t.Context(), l.ID(), time.Time{})
		}
	}
}
