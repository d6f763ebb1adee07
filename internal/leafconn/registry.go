package leafconn

import (
	"context"
	"fmt"
	"time"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/worker"
)

// A Registry is the registry of worker IDs that servers have. It is a [worker.Registry] and
// a [worker.LossyRegistry].
type Registry struct{ *Conn }

// Load returns the record of a worker ID.
func (r Registry) Load(ctx context.Context, id int64) (worker.Record, error) {
	res, err := repeatable(ctx, r.Conn, func(ctx context.Context, srv *server) (*leafv1.LoadResponse, error) {
		return srv.workers.Load(ctx, &leafv1.LoadRequest{Worker: id})
	})
	if err != nil {
		return worker.Record{}, fmt.Errorf("load worker ID %d: %w", id, err)
	}
	return RecordOf(res.GetRecord())
}

// Swap replaces a record. It sends the write once. Servers of older releases know no versions.
func (r Registry) Swap(ctx context.Context, old, new worker.Record) (worker.Record, error) {
	was, err := RecordMessage(old)
	if err != nil {
		return worker.Record{}, err
	}
	is, err := RecordMessage(new)
	if err != nil {
		return worker.Record{}, err
	}
	res, err := once(ctx, r.Conn, "", func(ctx context.Context, srv *server) (*leafv1.SwapResponse, error) {
		return srv.workers.Swap(ctx, &leafv1.SwapRequest{Old: was, New: is})
	})
	if err != nil {
		return worker.Record{}, fmt.Errorf("write the record of worker ID %d: %w", new.Worker, err)
	}
	new.Version = string(res.GetVersion())
	return new, nil
}

// List returns all records.
func (r Registry) List(ctx context.Context) ([]worker.Record, error) {
	res, err := repeatable(ctx, r.Conn, func(ctx context.Context, srv *server) (*leafv1.ListResponse, error) {
		return srv.workers.List(ctx, new(leafv1.ListRequest))
	})
	if err != nil {
		return nil, fmt.Errorf("list worker IDs: %w", err)
	}
	records := make([]worker.Record, len(res.GetRecords()))
	for i, m := range res.GetRecords() {
		if records[i], err = RecordOf(m); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// Clock returns the time by the clock of the servers' registry.
func (r Registry) Clock(ctx context.Context) (time.Time, error) {
	res, err := r.clock(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return res.GetTime().AsTime(), nil
}

// ServerEpoch returns which server of the servers' registry answers.
func (r Registry) ServerEpoch(ctx context.Context) (worker.ServerEpoch, error) {
	res, err := r.clock(ctx)
	return worker.ServerEpoch{Lossy: res.GetMayLoseWrites(), Incarnation: res.GetIncarnation(), Untracked: res.GetUntracked()}, err
}

func (r Registry) clock(ctx context.Context) (*leafv1.ClockResponse, error) {
	res, err := repeatable(ctx, r.Conn, func(ctx context.Context, srv *server) (*leafv1.ClockResponse, error) {
		return srv.workers.Clock(ctx, new(leafv1.ClockRequest))
	})
	if err != nil {
		return nil, fmt.Errorf("read the registry's clock: %w", err)
	}
	return res, nil
}

// RecordMessage returns a record as its text, which equal records have in common.
func RecordMessage(r worker.Record) (*leafv1.WorkerRecord, error) {
	m := &leafv1.WorkerRecord{Worker: r.Worker, Version: []byte(r.Version)}
	if r.IsZero() {
		return m, nil
	}
	text, err := r.MarshalText()
	m.Record = string(text)
	return m, err
}

// RecordOf is the inverse of [RecordMessage].
func RecordOf(m *leafv1.WorkerRecord) (worker.Record, error) {
	r := worker.Record{Worker: m.GetWorker(), Version: string(m.GetVersion())}
	if m.GetRecord() == "" {
		return r, nil
	}
	if err := r.UnmarshalText([]byte(m.GetRecord())); err != nil {
		return worker.Record{}, fmt.Errorf("worker ID %d: %w", m.GetWorker(), err)
	}
	return r, nil
}
