package rpcapi_test

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

func TestLeases(t *testing.T) {
	b, _, _ := backend(t)
	f, ctx := serveBackend(t, loopback, b), t.Context()
	layout := &leafv1.PoolLayout{Epoch: timestamppb.New(time.UnixMilli(1767225600000)), Tick: durationpb.New(time.Millisecond), WorkerBits: 1, SequenceBits: 12}
	created, err := f.admin.CreatePool(ctx, &leafv1.CreatePoolRequest{Pool: &leafv1.Pool{Name: "orders", Layout: layout}})
	if err != nil || created.GetPool().GetMaxTtl().AsDuration() != 10*time.Minute || created.GetPool().GetLayout().GetTimeBits() != 50 {
		t.Fatalf("%v, %v", created, err)
	}
	if pools, err := f.admin.ListPools(ctx, new(leafv1.ListPoolsRequest)); err != nil || len(pools.GetPools()) != 1 {
		t.Errorf("%v, %v", pools, err)
	}
	got, err := f.workers.ClaimLease(ctx, &leafv1.ClaimLeaseRequest{Pool: "orders", Holder: "web-1", Layout: layout})
	if err != nil {
		t.Fatal(err)
	}
	lease := got.GetLease()
	if ttl := lease.GetLimit().AsTime().Sub(lease.GetNow().AsTime()); ttl < 4*time.Minute || ttl > 5*time.Minute {
		t.Errorf("a lease of %v: %v", ttl, lease)
	}
	renewed, err := f.workers.RenewLease(ctx, &leafv1.RenewLeaseRequest{Lease: lease.GetLease(), Ttl: durationpb.New(9 * time.Minute)})
	if err != nil || !renewed.GetLease().GetLimit().AsTime().After(lease.GetLimit().AsTime()) {
		t.Errorf("%v, %v", renewed, err)
	}
	if list, err := f.admin.ListWorkers(ctx, &leafv1.ListWorkersRequest{Pool: "orders"}); err != nil || len(list.GetWorkers()) != 1 || list.GetWorkers()[0].GetOwner() != "web-1" {
		t.Errorf("%v, %v", list, err)
	}
	_, err = f.admin.ListWorkers(ctx, &leafv1.ListWorkersRequest{Pool: "order"})
	wantCode(t, "list an unknown pool", err, connect.CodeNotFound)
	_, err = f.workers.ReleaseLease(ctx, &leafv1.ReleaseLeaseRequest{Lease: lease.GetLease(), Used: timestamppb.New(time.Now().Add(time.Hour))})
	wantCode(t, "used beyond the limit", err, connect.CodeInvalidArgument)
	_, err = f.workers.ReleaseLease(ctx, &leafv1.ReleaseLeaseRequest{Lease: lease.GetLease()})
	wantCode(t, "without the time used", err, connect.CodeInvalidArgument)
	if _, err = f.workers.ReleaseLease(ctx, &leafv1.ReleaseLeaseRequest{Lease: lease.GetLease(), Used: timestamppb.New(time.UnixMilli(0))}); err != nil {
		t.Error(err)
	}
	_, err = f.workers.RenewLease(ctx, &leafv1.RenewLeaseRequest{Lease: lease.GetLease()})
	wantCode(t, "renew a released lease", err, connect.CodeFailedPrecondition)
	_, err = f.workers.ClaimLease(ctx, &leafv1.ClaimLeaseRequest{Pool: "order"})
	wantCode(t, "claim from an unknown pool", err, connect.CodeNotFound)
}

func TestLeasesNeedTheirRight(t *testing.T) {
	b, _, _ := backend(t)
	b.Access = access.New(access.Options{PublicRead: true})
	f, ctx := serveBackend(t, everyone, b), t.Context()
	_, err := f.workers.ClaimLease(ctx, new(leafv1.ClaimLeaseRequest))
	wantCode(t, "claim", err, connect.CodePermissionDenied)
	_, err = f.workers.RenewLease(ctx, new(leafv1.RenewLeaseRequest))
	wantCode(t, "renew", err, connect.CodePermissionDenied)
	_, err = f.workers.ReleaseLease(ctx, new(leafv1.ReleaseLeaseRequest))
	wantCode(t, "release", err, connect.CodePermissionDenied)
	_, err = f.admin.CreatePool(ctx, new(leafv1.CreatePoolRequest))
	wantCode(t, "create a pool", err, connect.CodePermissionDenied)
	without := serveBackend(t, loopback, frontend.Options{IDs: issuer.New(nil, nil)})
	_, err = without.workers.ClaimLease(ctx, new(leafv1.ClaimLeaseRequest))
	wantCode(t, "without a registry", err, connect.CodeUnimplemented)
}
