package issuer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// A LeaseStats counts what programs have done with leases of worker IDs.
type LeaseStats struct{ Claimed, Renewed, Released, Refused int64 }

// leases are the pools of a registry as a server knows them.
type leases struct {
	pools                               *worker.Pools
	unfit                               error // why this server has no pools
	claimed, renewed, released, refused atomic.Int64
}

// Lease has w lease worker IDs of pools as a server with these options does.
func (w *Workers) Lease(opts *worker.Options) {
	w.leases.pools, w.leases.unfit = worker.NewPools(w.registry, opts)
}

// LeaseStats returns the counts of this process.
func (w *Workers) LeaseStats() LeaseStats {
	l := &w.leases
	return LeaseStats{l.claimed.Load(), l.renewed.Load(), l.released.Load(), l.refused.Load()}
}

// inPools makes a call about pools.
func inPools[T any](ctx context.Context, w *Workers, what string, call func(context.Context, *worker.Pools) (T, error)) (got T, err error) {
	if err = w.leases.unfit; err == nil {
		ctx, cancel := context.WithTimeout(ctx, changeTimeout)
		defer cancel()
		got, err = call(ctx, w.leases.pools)
	}
	if err == nil {
		return got, nil
	}
	if _, ok := errors.AsType[*leaf.StoreError](err); ok {
		err = w.failed(err)
	}
	return got, fmt.Errorf("%s: %w", what, err)
}

// CreatePool creates a pool, see [worker.Pools.Create].
func (w *Workers) CreatePool(ctx context.Context, pool worker.Pool) (worker.Pool, error) {
	created, err := inPools(ctx, w, "create a pool of worker IDs", func(ctx context.Context, p *worker.Pools) (worker.Pool, error) {
		return p.Create(ctx, pool)
	})
	if err == nil {
		audit(ctx, w.log, "pool of worker IDs created", nil, nil, "pool", created.Name, "worker_bits", created.Layout.WorkerBits, "max_ttl", created.MaxTTL)
	}
	return created, err
}

// ListPools returns all pools, by name.
func (w *Workers) ListPools(ctx context.Context) ([]worker.Pool, error) {
	return inPools(ctx, w, "list the pools of worker IDs", func(ctx context.Context, p *worker.Pools) ([]worker.Pool, error) {
		return p.List(ctx)
	})
}

// ListPool returns every worker ID of a pool that had a claim, by number.
func (w *Workers) ListPool(ctx context.Context, name string) ([]worker.PoolWorker, error) {
	return inPools(ctx, w, "list the worker IDs of a pool", func(ctx context.Context, p *worker.Pools) ([]worker.PoolWorker, error) {
		return p.Workers(ctx, name)
	})
}

// Claim leases a worker ID to a program, see [worker.Pools.Claim].
func (w *Workers) Claim(ctx context.Context, c worker.PoolClaim) (worker.PoolLease, error) {
	l, err := inPools(ctx, w, "claim a lease", func(ctx context.Context, p *worker.Pools) (worker.PoolLease, error) {
		return p.Claim(ctx, c)
	})
	w.leases.count(&w.leases.claimed, err)
	if err == nil {
		w.log.Info("a worker ID is leased", "pool", c.Pool, "worker", l.Worker, "holder", c.Holder, "until", l.Limit)
	}
	return l, err
}

// Renew moves the limit of a lease, see [worker.Pools.Renew].
func (w *Workers) Renew(ctx context.Context, lease string, ttl time.Duration) (worker.PoolLease, error) {
	l, err := inPools(ctx, w, "renew a lease", func(ctx context.Context, p *worker.Pools) (worker.PoolLease, error) {
		return p.Renew(ctx, lease, ttl)
	})
	w.leases.count(&w.leases.renewed, err)
	return l, err
}

// Release ends a lease, see [worker.Pools.Release].
func (w *Workers) Release(ctx context.Context, lease string, used time.Time) error {
	_, err := inPools(ctx, w, "release a lease", func(ctx context.Context, p *worker.Pools) (struct{}, error) {
		return struct{}{}, p.Release(ctx, lease, used)
	})
	w.leases.count(&w.leases.released, err)
	return err
}

func (l *leases) count(done *atomic.Int64, err error) {
	if err != nil {
		done = &l.refused
	}
	done.Add(1)
}
