package drivertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// pools has a program lease a worker ID of a pool through different clients. A registry has no pools
// if it assigns worker IDs, or may lose writes and does not tell which server answers.
func pools(ctx context.Context, b *registryFixture) error {
	var all []*worker.Pools
	for _, r := range b.clients(3) {
		p, err := worker.NewPools(r, &worker.Options{Tolerance: time.Second, Owner: "node-1"})
		if errors.Is(err, leaf.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	pool := worker.Pool{Name: "orders", MaxTTL: 3 * time.Second, Layout: worker.ServedLayout{Tick: 1, WorkerBits: 2, SequenceBits: 12}}
	if _, err := all[0].Create(ctx, pool); errors.Is(err, leaf.ErrUnsupported) {
		return nil
	} else if err != nil {
		return err
	}
	lease, err := leaseSoon(ctx, all[1])
	if err != nil {
		return err
	}
	renewed, err := all[2].Renew(ctx, lease.ID(), 3*time.Second)
	if err != nil || renewed.Limit.Before(lease.Limit) {
		return fmt.Errorf("renew %v: %v, %w", lease.Limit, renewed.Limit, err)
	}
	workers, err := all[0].Workers(ctx, "orders")
	if err != nil || len(workers) < 1 || workers[0].Holder != "program" {
		return fmt.Errorf("the worker IDs are %+v, %w", workers, err)
	}
	if err := all[0].Release(ctx, lease.ID(), lease.Now); err != nil {
		return err
	}
	if _, err := all[1].Renew(ctx, lease.ID(), 3*time.Second); !errors.Is(err, worker.ErrLeaseLost) {
		return fmt.Errorf("a renewal after the release: %w", err)
	}
	return nil
}

// leaseSoon claims worker IDs until one counts, which takes a while if the registry may lose writes,
// and returns the lease of worker ID 0.
func leaseSoon(ctx context.Context, p *worker.Pools) (worker.PoolLease, error) {
	for {
		l, err := p.Claim(ctx, worker.PoolClaim{Pool: "orders", Holder: "program"})
		switch {
		case err == nil && l.Worker == 0:
			return l, nil
		case err != nil && !errors.Is(err, worker.ErrWaiting) && !errors.Is(err, worker.ErrNoneFree):
			return l, err
		}
		select {
		case <-ctx.Done():
			return l, errors.Join(err, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
