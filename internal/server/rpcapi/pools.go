package rpcapi

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/worker"
)

func (s *adminService) CreatePool(ctx context.Context, req *leafv1.CreatePoolRequest) (*leafv1.CreatePoolResponse, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	pool, err := workers.CreatePool(ctx, worker.Pool{
		Name: req.GetPool().GetName(), Layout: layoutOf(req.GetPool().GetLayout()),
		MaxTTL: req.GetPool().GetMaxTtl().AsDuration(), ClaimDelay: req.GetPool().GetClaimDelay().AsDuration(),
	})
	if err != nil {
		return nil, err
	}
	return &leafv1.CreatePoolResponse{Pool: poolMessage(pool)}, nil
}

func (s *adminService) ListPools(ctx context.Context, _ *leafv1.ListPoolsRequest) (*leafv1.ListPoolsResponse, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	pools, err := workers.ListPools(ctx)
	if err != nil {
		return nil, err
	}
	res := new(leafv1.ListPoolsResponse)
	for _, p := range pools {
		res.Pools = append(res.Pools, poolMessage(p))
	}
	return res, nil
}

func listPool(ctx context.Context, workers *issuer.Workers, name string) (*leafv1.ListWorkersResponse, error) {
	list, err := workers.ListPool(ctx, name)
	if err != nil {
		return nil, err
	}
	res := new(leafv1.ListWorkersResponse)
	for _, w := range list {
		res.Workers = append(res.Workers, &leafv1.Worker{
			Worker: &w.Worker, Held: w.Held, Owner: w.Holder, Term: w.Term, Horizon: timestamp(w.Limit), Seen: timestamp(w.Seen),
		})
	}
	return res, nil
}

func (s *workerService) ClaimLease(ctx context.Context, req *leafv1.ClaimLeaseRequest) (*leafv1.ClaimLeaseResponse, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	if err := frontend.CallerIn(ctx).Lease(req.GetPool()); err != nil {
		return nil, err
	}
	claim := worker.PoolClaim{Pool: req.GetPool(), TTL: req.GetTtl().AsDuration(), Holder: req.GetHolder()}
	if l := req.GetLayout(); l != nil {
		claim.Layout = layoutOf(l)
	}
	l, err := workers.Claim(ctx, claim)
	if err != nil {
		return nil, err
	}
	return &leafv1.ClaimLeaseResponse{Lease: leaseMessage(l)}, nil
}

func (s *workerService) RenewLease(ctx context.Context, req *leafv1.RenewLeaseRequest) (*leafv1.RenewLeaseResponse, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	l, err := workers.Renew(ctx, req.GetLease(), req.GetTtl().AsDuration())
	if err != nil {
		return nil, err
	}
	return &leafv1.RenewLeaseResponse{Lease: leaseMessage(l)}, nil
}

func (s *workerService) ReleaseLease(ctx context.Context, req *leafv1.ReleaseLeaseRequest) (*leafv1.ReleaseLeaseResponse, error) {
	workers, err := s.NeedWorkers()
	if err != nil {
		return nil, err
	}
	used := req.GetUsed().AsTime()
	if !req.GetUsed().IsValid() || used.UnixMilli() < 0 { // one that forgets it would lose the times that it has issued
		return nil, fmt.Errorf("%w: used must be the latest time in an issued ID, or the Unix epoch if there is none", leaf.ErrInvalid)
	}
	return new(leafv1.ReleaseLeaseResponse), workers.Release(ctx, req.GetLease(), used)
}

func layoutOf(m *leafv1.PoolLayout) worker.ServedLayout {
	return worker.ServedLayout{
		Epoch: m.GetEpoch().AsTime().UnixMilli(), Tick: m.GetTick().AsDuration().Milliseconds(),
		TimeBits: int(m.GetTimeBits()), WorkerBits: int(m.GetWorkerBits()), SequenceBits: int(m.GetSequenceBits()),
	}
}

func layoutMessage(l worker.ServedLayout) *leafv1.PoolLayout {
	return &leafv1.PoolLayout{
		Epoch: timestamppb.New(time.UnixMilli(l.Epoch)), Tick: durationpb.New(time.Duration(l.Tick) * time.Millisecond),
		TimeBits: int32(l.TimeBits), WorkerBits: int32(l.WorkerBits), SequenceBits: int32(l.SequenceBits),
	}
}

func poolMessage(p worker.Pool) *leafv1.Pool {
	return &leafv1.Pool{Name: p.Name, Layout: layoutMessage(p.Layout), MaxTtl: durationpb.New(p.MaxTTL), ClaimDelay: durationpb.New(p.ClaimDelay)}
}

func leaseMessage(l worker.PoolLease) *leafv1.PoolLease {
	return &leafv1.PoolLease{
		Lease: l.ID(), Pool: l.Pool.Name, Worker: l.Worker, Layout: layoutMessage(l.Pool.Layout),
		Floor: timestamp(l.Floor), Limit: timestamp(l.Limit), Now: timestamp(l.Now), RenewAt: timestamp(l.RenewAt()),
	}
}
