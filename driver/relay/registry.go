package relay

import (
	"context"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// Load returns the record of a worker ID.
func (r *Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	return r.servers.Load(ctx, id)
}

// Swap replaces a record. It is sent once.
func (r *Registry) Swap(ctx context.Context, old, new worker.Record) error {
	return r.servers.Swap(ctx, old, new)
}

// List returns all records.
func (r *Registry) List(ctx context.Context) ([]worker.Record, error) { return r.servers.List(ctx) }

// Clock returns the time by the clock of the servers' registry.
func (r *Registry) Clock(ctx context.Context) (time.Time, error) { return r.servers.Clock(ctx) }

// Reign returns which server of the servers' registry answers.
func (r *Registry) Reign(ctx context.Context) (worker.Reign, error) { return r.servers.Reign(ctx) }
