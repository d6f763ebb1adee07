package drivertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// A registryFixture is the backend as one rule uses it.
type registryFixture struct {
	RegistryBackend
	t testing.TB
}

// open returns a further client.
func (b *registryFixture) open() worker.Registry { return b.Open(b.t) }

// clients returns n further clients.
func (b *registryFixture) clients(n int) []worker.Registry {
	all := make([]worker.Registry, n)
	for i := range all {
		all[i] = b.open()
	}
	return all
}

// reopen closes r, if it can be closed, and returns another client.
func (b *registryFixture) reopen(r worker.Registry) (worker.Registry, error) {
	if c, ok := r.(io.Closer); ok {
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("close: %w", err)
		}
	}
	return b.open(), nil
}

// never is the content of an unwritten cell.
func never(id int64) worker.Record { return worker.Record{Worker: id} }

// claimed is a record as a keeper writes it, of one term and by a fresh instance.
func claimed(id, term int64) worker.Record {
	return worker.Record{
		Worker: id, Instance: worker.NewInstance(), Term: term, Horizon: time.UnixMilli(1790000000000 + term),
		Layouts: []worker.ServedLayout{
			{Name: "snowflake", Epoch: 1288834974657, Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12},
			{Name: "uid", Epoch: 1463673600000, Tick: 1000, TimeBits: 31, WorkerBits: 19, SequenceBits: 13},
		},
		Owner: "node-1:8080", Seen: time.UnixMilli(1780000000000), Offset: -3 * time.Millisecond,
		Incarnation: "7001/2/1780000000000001", Since: time.UnixMilli(1770000000000), ClaimDelay: 27 * time.Second,
	}
}

// attempt makes a swap and discards the new version.
func attempt(ctx context.Context, r worker.Registry, old, new worker.Record) error {
	_, err := r.Swap(ctx, old, new)
	return err
}

// swap makes a call that must succeed.
func swap(ctx context.Context, r worker.Registry, old, new worker.Record) error {
	if err := attempt(ctx, r, old, new); err != nil {
		return fmt.Errorf("swap of worker %d from term %d to %d: %w", new.Worker, old.Term, new.Term, err)
	}
	return nil
}

// put writes new over any content.
func put(ctx context.Context, r worker.Registry, new worker.Record) error {
	old, err := r.Load(ctx, new.Worker)
	if err != nil {
		return fmt.Errorf("load worker %d: %w", new.Worker, err)
	}
	return swap(ctx, r, old, new)
}

// conflicts makes a call that must conflict, and checks that the cell stays.
func conflicts(ctx context.Context, r worker.Registry, what string, old, new, stays worker.Record) error {
	return first(
		is("swap from "+what, attempt(ctx, r, old, new), worker.ErrConflict),
		holds(ctx, r, stays))
}

// holds checks the content of want.Worker's cell.
func holds(ctx context.Context, r worker.Registry, want worker.Record) error {
	got, err := r.Load(ctx, want.Worker)
	if err != nil {
		return fmt.Errorf("load worker %d: %w", want.Worker, err)
	}
	if !got.Equal(want) {
		return fmt.Errorf("the cell of worker %d holds %+v, want %+v", want.Worker, got, want)
	}
	return nil
}

// listed checks that the listing is want.
func listed(ctx context.Context, r worker.Registry, want ...worker.Record) error {
	got, err := r.List(ctx)
	if err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d records are listed, want %d", len(got), len(want))
	}
	for i, record := range got {
		if !record.Equal(want[i]) {
			return fmt.Errorf("record %d of the list is %+v, want %+v", i, record, want[i])
		}
	}
	return nil
}

// won says whether a swap won a race; any error but a conflict fails it.
func won(err error) (bool, error) {
	if errors.Is(err, worker.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}
