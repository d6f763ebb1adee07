package sqldb

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/worker"
)

var (
	_ worker.Registry      = (*Registry)(nil)
	_ worker.LossyRegistry = (*Registry)(nil)
)

// A Registry keeps the records of workers in a database. It is a [worker.Registry]
// and a [worker.LossyRegistry]. Its methods are safe for concurrent use.
type Registry struct {
	handle
	db sqlstore.Workers
}

// Load returns the record of a worker.
func (r *Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	return call(ctx, &r.handle, fmt.Sprintf("load worker %d", id), func() (worker.Record, error) {
		if id < 0 {
			return worker.Record{}, fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		}
		return in(ctx, r.db.Do, func(s *sqlstore.Session) (worker.Record, error) { return s.Record(id) })
	})
}

// Swap writes new in the place of old. It sends the write once.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	return call(ctx, &r.handle, fmt.Sprintf("swap worker %d", new.Worker), func() (worker.Record, error) {
		switch {
		case old.Worker != new.Worker:
			return worker.Record{}, fmt.Errorf("%w: the old record is of worker %d", leaf.ErrInvalid, old.Worker)
		case new.Worker < 0:
			return worker.Record{}, fmt.Errorf("%w: no worker has a negative ID", leaf.ErrInvalid)
		case new.IsZero():
			return worker.Record{}, fmt.Errorf("%w: the new record is empty", leaf.ErrInvalid)
		}
		return in(ctx, r.db.Do, func(s *sqlstore.Session) (worker.Record, error) { return s.Swap(old, new) })
	})
}

// List returns all records, by worker ID. An unreadable record fails the call.
func (r *Registry) List(ctx context.Context) ([]worker.Record, error) {
	return call(ctx, &r.handle, "list workers", func() ([]worker.Record, error) {
		return in(ctx, r.db.Do, (*sqlstore.Session).Records)
	})
}

// Clock returns the server's time. SQLite has no server: it returns the zero Time.
func (r *Registry) Clock(ctx context.Context) (time.Time, error) {
	return call(ctx, &r.handle, "ask the registry's clock", func() (time.Time, error) {
		return in(ctx, r.db.Do, (*sqlstore.Session).Time)
	})
}

// ServerEpoch returns which server answers, and whether it may lose writes.
func (r *Registry) ServerEpoch(ctx context.Context) (worker.ServerEpoch, error) {
	return call(ctx, &r.handle, "ask whether the registry loses writes", func() (worker.ServerEpoch, error) { return r.db.ServerEpoch(ctx) })
}
