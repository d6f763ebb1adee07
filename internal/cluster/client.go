package cluster

import (
	"context"
	"errors"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3rpc"
	"go.etcd.io/etcd/server/v3/proxy/grpcproxy/adapter"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func (m *Member) newClient() *clientv3.Client {
	c := clientv3.NewCtxClient(m.ctx)
	c.KV = clientv3.NewKVFromKVClient(adapter.KvServerToKvClient(localKV{m: m}), c)
	return c
}

// A localKV is etcd's service for keys in this process. A call ends with its context, and at the
// election of a leader, because the new leader may have missed the request.
type localKV struct {
	etcdserverpb.UnimplementedKVServer
	m *Member
}

func (k localKV) Range(ctx context.Context, r *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return call(ctx, k.m, r, etcdserverpb.KVServer.Range)
}

func (k localKV) Put(ctx context.Context, r *etcdserverpb.PutRequest) (*etcdserverpb.PutResponse, error) {
	return call(ctx, k.m, r, etcdserverpb.KVServer.Put)
}

func (k localKV) DeleteRange(ctx context.Context, r *etcdserverpb.DeleteRangeRequest) (*etcdserverpb.DeleteRangeResponse, error) {
	return call(ctx, k.m, r, etcdserverpb.KVServer.DeleteRange)
}

func (k localKV) Txn(ctx context.Context, r *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	return call(ctx, k.m, r, etcdserverpb.KVServer.Txn)
}

func (k localKV) Compact(ctx context.Context, r *etcdserverpb.CompactionRequest) (*etcdserverpb.CompactionResponse, error) {
	return call(ctx, k.m, r, etcdserverpb.KVServer.Compact)
}

// errFull replaces etcd's error, whose remedies are work for people.
var errFull = status.Error(codes.ResourceExhausted, "the cluster's store is full, and refuses writes until the members have made room: wait a minute")

func call[Q, A any](ctx context.Context, m *Member, request Q, do func(etcdserverpb.KVServer, context.Context, Q) (A, error)) (A, error) {
	var none A
	server := m.running()
	if server == nil {
		return none, status.Error(codes.Unavailable, "the member of the cluster in this process has not started")
	}
	elected := server.LeaderChangedNotify() // before the look at the leader, so that no election is missed
	switch {
	case m.failure() != nil:
		return none, status.Error(codes.Unavailable, m.failure().Error())
	case server.Leader() == 0:
		return none, rpctypes.ErrGRPCNoLeader
	}
	type answer struct {
		resp A
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		resp, err := do(v3rpc.NewQuotaKVServer(server), ctx, request)
		answers <- answer{resp, err}
	}()
	select {
	case a := <-answers:
		if errors.Is(a.err, rpctypes.ErrGRPCNoSpace) {
			return none, errFull
		}
		return a.resp, a.err
	case <-elected:
		return none, rpctypes.ErrGRPCLeaderChanged
	case <-m.failed:
		return none, status.Error(codes.Unavailable, m.failure().Error())
	case <-ctx.Done():
		return none, status.FromContextError(ctx.Err()).Err()
	}
}
