package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry      = (*Registry)(nil)
	_ worker.Watcher       = (*Registry)(nil)
	_ worker.LossyRegistry = (*Registry)(nil)
)

// A Registry keeps the records of workers in a [DB]. It is a [worker.Registry], and a
// [worker.Watcher] where the backend is a [Watcher]. Its methods are safe for concurrent use.
type Registry struct {
	db     *DB
	marker marker
}

// ServerEpoch identifies the answering server of the backend, if that is a [Lossy] one.
func (r *Registry) ServerEpoch(ctx context.Context) (epoch worker.ServerEpoch, err error) {
	if b, ok := r.db.backend.(Lossy); ok {
		epoch, err = b.ServerEpoch(ctx)
	}
	return epoch, err
}

func workerKey(id int64) Key { return Key{Workers, strconv.FormatInt(id, 10)} }

// do makes a call, about a worker, once the registry is known to exist.
func (r *Registry) do(ctx context.Context, id int64, call func() error) error {
	return r.db.do(ctx, func() error {
		if id < 0 {
			return fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		}
		if err := r.marker.check(ctx); err != nil {
			return err
		}
		return call()
	})
}

// Load returns the record of a worker.
func (r *Registry) Load(ctx context.Context, id int64) (record worker.Record, err error) {
	err = r.do(ctx, id, func() error {
		record, err = r.load(ctx, id)
		return err
	})
	if err != nil {
		return worker.Record{}, fmt.Errorf("load worker %d: %w", id, err)
	}
	return record, nil
}

// load returns the record of a worker. Before it reports a missing record, it checks that the
// registry still exists.
func (r *Registry) load(ctx context.Context, id int64) (worker.Record, error) {
	cell, err := r.db.backend.Get(ctx, workerKey(id))
	switch {
	case err != nil:
		return worker.Record{}, err
	case cell.Version == "":
		return worker.Record{Worker: id}, r.marker.recheck(ctx)
	}
	return cell.record(id)
}

// record reads the record of a worker.
func (c Cell) record(id int64) (worker.Record, error) {
	record := worker.Record{Worker: id, Version: c.mark()}
	return record, record.UnmarshalText([]byte(c.Value))
}

// Swap writes new in the place of old. It sends the write once, and reads nothing before it if old
// has a version.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	err := r.do(ctx, new.Worker, func() error {
		switch {
		case old.Worker != new.Worker:
			return fmt.Errorf("%w: the old record is of worker %d", leaf.ErrInvalid, old.Worker)
		case new.IsZero():
			return fmt.Errorf("%w: the new record is empty", leaf.ErrInvalid)
		}
		return r.swap(ctx, old, &new)
	})
	if err != nil {
		return worker.Record{}, fmt.Errorf("swap worker %d: %w", new.Worker, err)
	}
	return new, nil
}

// swap sets the version of new. It compares records without a version, not their texts: another
// release, or a person, may have written one record in another way.
func (r *Registry) swap(ctx context.Context, old worker.Record, new *worker.Record) error {
	text, err := new.MarshalText()
	if err != nil {
		return err
	}
	if old.Version == "" {
		found, err := r.load(ctx, old.Worker)
		if err != nil {
			return err
		}
		if !found.Equal(old) {
			return worker.ErrConflict
		}
		old = found
	}
	now, err := r.db.backend.Swap(ctx, marked(workerKey(old.Worker), old.Version), string(text))
	if errors.Is(err, ErrConflict) {
		return fmt.Errorf("%w meanwhile", worker.ErrConflict)
	}
	new.Version = now.mark()
	return err
}

// List returns all records, by worker ID. An unreadable record fails the call. A claim begins with
// it, so it asks a [Checker] again.
func (r *Registry) List(ctx context.Context) (all []worker.Record, err error) {
	r.db.checked.Store(false)
	err = r.db.do(ctx, func() error {
		if err := r.marker.recheck(ctx); err != nil {
			return err
		}
		for cell, err := range r.db.backend.List(ctx, Workers) {
			if err != nil {
				return err
			}
			record, err := readRecord(cell)
			if err != nil {
				return err
			}
			all = append(all, record)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list workers: %w", err)
	}
	slices.SortFunc(all, func(a, b worker.Record) int { return cmp.Compare(a.Worker, b.Worker) })
	return all, nil
}

func readRecord(cell Cell) (worker.Record, error) {
	name := cell.Key.Name
	id, err := strconv.ParseInt(name, 10, 64)
	if err != nil || id < 0 || strconv.FormatInt(id, 10) != name {
		return worker.Record{}, fmt.Errorf("the key %s is not a worker's: delete it", cell.Key)
	}
	record, err := cell.record(id)
	return record, wrap(err, "worker %d", id)
}

// Clock returns the time by the backend's clock.
func (r *Registry) Clock(ctx context.Context) (now time.Time, err error) {
	err = r.do(ctx, 0, func() error {
		now, err = r.db.backend.Clock(ctx)
		return err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("ask the registry's clock: %w", err)
	}
	return now, nil
}

// Watch returns a channel that tells of writes to the record of a worker, nil if the
// backend does not notice them.
func (r *Registry) Watch(ctx context.Context, id int64) (wrote <-chan struct{}, err error) {
	w, ok := r.db.backend.(Watcher)
	if !ok {
		return nil, nil
	}
	err = r.do(ctx, id, func() error {
		wrote, err = w.Watch(ctx, workerKey(id))
		return err
	})
	return wrote, wrap(err, "watch worker %d", id)
}
