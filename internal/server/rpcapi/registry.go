package rpcapi

import (
	"context"
	"time"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/worker"
)

// workerService passes calls on to the registry of this server, once each.
type workerService struct{ *frontend.Options }

func (s *workerService) registry() (worker.Registry, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	return workers.Registry()
}

func (s *workerService) Load(ctx context.Context, req *leafv1.LoadRequest) (*leafv1.LoadResponse, error) {
	registry, err := s.registry()
	if err != nil {
		return nil, err
	}
	record, err := registry.Load(ctx, req.GetWorker())
	if err != nil {
		return nil, failed(err)
	}
	m, err := leafconn.RecordMessage(record)
	return &leafv1.LoadResponse{Record: m}, err
}

func (s *workerService) Swap(ctx context.Context, req *leafv1.SwapRequest) (*leafv1.SwapResponse, error) {
	registry, err := s.registry()
	if err != nil {
		return nil, err
	}
	old, err := leafconn.RecordOf(req.GetOld())
	if err != nil {
		return nil, err
	}
	new, err := leafconn.RecordOf(req.GetNew())
	if err != nil {
		return nil, err
	}
	now, err := registry.Swap(ctx, old, new)
	if err != nil {
		return nil, failed(err)
	}
	return &leafv1.SwapResponse{Version: []byte(now.Version)}, nil
}

func (s *workerService) List(ctx context.Context, _ *leafv1.ListRequest) (*leafv1.ListResponse, error) {
	registry, err := s.registry()
	if err != nil {
		return nil, err
	}
	records, err := registry.List(ctx)
	if err != nil {
		return nil, failed(err)
	}
	res := &leafv1.ListResponse{Records: make([]*leafv1.WorkerRecord, len(records))}
	for i, r := range records {
		if res.Records[i], err = leafconn.RecordMessage(r); err != nil {
			return nil, err
		}
	}
	return res, nil
}

// Clock returns this machine's time if that is the registry's clock: the caller is on another
// machine.
func (s *workerService) Clock(ctx context.Context, _ *leafv1.ClockRequest) (*leafv1.ClockResponse, error) {
	registry, err := s.registry()
	if err != nil {
		return nil, err
	}
	res := new(leafv1.ClockResponse)
	if lossy, ok := registry.(worker.LossyRegistry); ok {
		epoch, err := lossy.ServerEpoch(ctx)
		if err != nil {
			return nil, failed(err)
		}
		res.MayLoseWrites, res.Incarnation, res.Untracked = epoch.Lossy, epoch.Incarnation, epoch.Untracked
	}
	now, err := registry.Clock(ctx)
	if err != nil {
		return nil, failed(err)
	}
	if now.IsZero() {
		now = time.Now()
	}
	res.Time = timestamp(now)
	return res, nil
}

// failed marks an error of the registry.
func failed(err error) error { return &leaf.StoreError{Err: err} }
