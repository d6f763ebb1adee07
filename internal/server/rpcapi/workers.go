package rpcapi

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/worker"
)

func (s *adminService) ListWorkers(ctx context.Context, req *leafv1.ListWorkersRequest) (*leafv1.ListWorkersResponse, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	if req.GetPool() != "" {
		return listPool(ctx, workers, req.GetPool())
	}
	records, err := workers.List(ctx)
	if err != nil {
		return nil, err
	}
	res := new(leafv1.ListWorkersResponse)
	for _, r := range records {
		res.Workers = append(res.Workers, workerMessage(r, workers.Mine(r.Worker)))
	}
	starts, supply, ok, err := workers.Starts(ctx)
	if err != nil || !ok {
		return res, err
	}
	res.Starts = &leafv1.Starts{Used: supply.Used, Max: supply.Max, Left: supply.Left()}
	for _, st := range starts {
		res.Starts.Latest = append(res.Starts.Latest, &leafv1.Start{
			Worker: st.Worker, Host: st.Host, Port: st.Port, Kind: st.Kind, Date: st.Date, Mine: workers.Mine(st.Worker),
		})
	}
	return res, nil
}

func (s *adminService) FreeWorker(ctx context.Context, req *leafv1.FreeWorkerRequest) (*leafv1.FreeWorkerResponse, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	if req.Worker == nil {
		return nil, fmt.Errorf("free a worker ID: %w: worker is missing", leaf.ErrInvalid)
	}
	record, err := workers.Free(ctx, req.GetWorker())
	if err != nil {
		return nil, err
	}
	return &leafv1.FreeWorkerResponse{Worker: workerMessage(record, false)}, nil
}

func workerMessage(r worker.Record, mine bool) *leafv1.Worker {
	m := &leafv1.Worker{
		Worker: &r.Worker, Held: r.Held(), Owner: r.Owner, Term: r.Term, Mine: mine,
		Horizon: timestamp(r.Horizon), Seen: timestamp(r.Seen),
	}
	if r.Offset != 0 {
		m.ClockOffset = durationpb.New(r.Offset)
	}
	for _, l := range r.Layouts {
		if !l.IsDefault() {
			m.Layouts = append(m.Layouts, l.Name)
		}
	}
	return m
}
