package etcd_test

import (
	"context"
	"math"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A lossy member carries out transactions, and then fails those that write with a
// status, as a server does whose answer is lost.
type lossy struct {
	etcdserverpb.UnimplementedKVServer
	behind etcdserverpb.KVClient
	fail   atomic.Uint32 // codes.Code; OK: does not fail
	late   time.Duration // every answer
	writes atomic.Int64
	reads  atomic.Int64
	stale  atomic.Int64 // reads that any member may answer from its own data
}

func (l *lossy) Txn(ctx context.Context, req *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	resp, err := l.behind.Txn(context.WithoutCancel(ctx), req)
	time.Sleep(l.late)
	for _, op := range req.Success {
		if r := op.GetRequestRange(); r != nil {
			l.reads.Add(1)
			if r.Serializable {
				l.stale.Add(1)
			}
		}
	}
	if len(req.Compare) == 0 {
		return resp, err
	}
	l.writes.Add(1)
	if code := codes.Code(l.fail.Swap(uint32(codes.OK))); code != codes.OK && err == nil {
		return nil, status.Error(code, "the answer was lost")
	}
	return resp, err
}

// newLossy starts a lossy member before the shared one, and returns where it is.
func newLossy(t testing.TB) (l *lossy, endpoint string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = &lossy{behind: etcdserverpb.NewKVClient(connect(t, shared.Endpoints()).ActiveConnection())}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, l)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })
	return l, listener.Addr().String()
}

// A write with a lost answer is an error. Neither the driver nor the client library repeats it,
// whatever the lost answer was.
func TestSentOnce(t *testing.T) {
	member, at := newLossy(t)
	endpoints := []string{at, at, at} // others to turn to
	for _, code := range []codes.Code{codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Internal, codes.Unknown, codes.ResourceExhausted, codes.Aborted} {
		t.Run(code.String(), func(t *testing.T) {
			o := newOptions()
			direct := newStore(t, shared, o, order)(t)
			newRegistry(t, shared, o)
			drivertest.TestSentOnce(t, drivertest.Lossy{
				Store: open(t, endpoints, o), Registry: openRegistry(t, endpoints, o), Direct: direct, Tag: order,
				Lose:   func() { member.fail.Store(uint32(code)) },
				Writes: member.writes.Load,
			})
		})
	}
}

// No read may be answered by a member that lags behind.
func TestReadsAreLinearizable(t *testing.T) {
	member, at := newLossy(t)
	o := newOptions()
	newStore(t, shared, o, order)
	newRegistry(t, shared, o)
	drivertest.TestReads(t, open(t, []string{at}, o), openRegistry(t, []string{at}, o), order.Name, func() {})
	if n := member.stale.Load(); n > 0 || member.reads.Load() == 0 {
		t.Errorf("of %d reads a lagging member may answer %d", member.reads.Load(), n)
	}
}

// A restored counter may reach a known revision with another value: the swap compares the value
// too.
func TestValueIsCompared(t *testing.T) {
	member, at := newLossy(t)
	o := newOptions()
	newStore(t, shared, o, order)
	s := open(t, []string{at}, o)
	if _, err := s.Advance(t.Context(), "order", 10); err != nil {
		t.Fatal(err)
	}
	compares := make(chan []*etcdserverpb.Compare, 1)
	member.behind = recorder{member.behind, compares}
	if _, err := s.Advance(t.Context(), "order", 10); err != nil {
		t.Fatal(err)
	}
	targets := make(map[etcdserverpb.Compare_CompareTarget]int)
	for _, c := range <-compares {
		targets[c.Target]++
	}
	if targets[etcdserverpb.Compare_MOD] != 1 || targets[etcdserverpb.Compare_VALUE] != 1 {
		t.Errorf("an advance compares %v", targets)
	}
}

type recorder struct {
	etcdserverpb.KVClient
	compares chan []*etcdserverpb.Compare
}

func (r recorder) Txn(ctx context.Context, req *etcdserverpb.TxnRequest, opts ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	r.compares <- req.Compare
	return r.KVClient.Txn(ctx, req, opts...)
}

// The known cell of a counter may be out of date: it is no reason to refuse a call.
func TestOverflowIsLookedUp(t *testing.T) {
	o := newOptions()
	open := newStore(t, shared, o, segment.Tag{Name: "order", MaxID: math.MaxInt64 - 10, Step: 1})
	s, other := open(t), open(t)
	if _, err := s.Advance(t.Context(), "order", 10); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Alter(t.Context(), "order", segment.Change{MaxID: new(int64(100)), Force: true}); err != nil {
		t.Fatal(err)
	}
	if grant, err := s.Advance(t.Context(), "order", 10); err != nil || grant.Range.Start != 100 {
		t.Errorf("got %v, %v, want a range from 100", grant.Range, err)
	}
}

// A first call succeeds where any member can be reached, whichever it begins with.
func TestOneMemberReachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := l.Addr().String()
	_ = l.Close()
	o := newOptions()
	newStore(t, shared, o, order)
	newRegistry(t, shared, o)
	for range 10 { // the first member is chosen at random
		endpoints := []string{gone, shared.Endpoints()[0], gone}
		if _, err := open(t, endpoints, o).Advance(t.Context(), "order", 1); err != nil {
			t.Error(err)
		}
		if _, err := openRegistry(t, endpoints, o).Load(t.Context(), 7); err != nil {
			t.Error(err)
		}
		if _, err := openRegistry(t, endpoints, o).Clock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// A member that takes connections and says nothing costs about a second, not the time
// that a caller has.
func TestOneMemberFrozen(t *testing.T) {
	testserver.Long(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	o := newOptions()
	newStore(t, shared, o, order)
	newRegistry(t, shared, o)
	endpoints := []string{l.Addr().String(), shared.Endpoints()[0]}
	r := openRegistry(t, endpoints, o)
	for what, call := range map[string]func(context.Context) error{
		"advance": func(ctx context.Context) error {
			_, err := open(t, endpoints, o).Advance(ctx, "order", 1)
			return err
		},
		"load":  func(ctx context.Context) error { _, err := r.Load(ctx, 7); return err },
		"clock": func(ctx context.Context) error { _, err := r.Clock(ctx); return err },
	} {
		for range 4 { // the first member is chosen at random
			if err := call(within(t, 10*time.Second)); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if _, err := r.Clock(within(t, leastAnswer)); err != nil {
		t.Errorf("the frozen member is asked for the time again: %v", err)
	}
}

// leastAnswer is less than the cost of a frozen member.
const leastAnswer = 500 * time.Millisecond

// If all members are slow, they get more time.
func TestAllMembersSlow(t *testing.T) {
	testserver.Long(t)
	t.Parallel() // it mostly waits
	member, at := newLossy(t)
	member.late = 1100 * time.Millisecond
	o := newOptions()
	newStore(t, shared, o, order)
	s := open(t, []string{at, at}, o)
	_, err := s.Advance(within(t, 10*time.Second), "order", 1)
	for i := 0; err != nil && i < 3; i++ {
		t.Log(err)
		_, err = s.Advance(within(t, 10*time.Second), "order", 1)
	}
	if err != nil {
		t.Error(err)
	}
}

// A door that stays closed is an error.
func TestTokenRefusedForEver(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterKVServer(server, closedDoor{})
	etcdserverpb.RegisterAuthServer(server, porter{})
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() { server.Stop(); <-served })
	store, registry := both(t, []string{listener.Addr().String()}, &etcd.Options{Username: "leaf", Password: "secret"})
	says(t, "store", store, "invalid auth token")
	says(t, "registry", registry, "invalid auth token")
}

type closedDoor struct {
	etcdserverpb.UnimplementedKVServer
}

func (closedDoor) Txn(context.Context, *etcdserverpb.TxnRequest) (*etcdserverpb.TxnResponse, error) {
	return nil, rpctypes.ErrGRPCInvalidAuthToken
}

type porter struct {
	etcdserverpb.UnimplementedAuthServer
}

func (porter) Authenticate(context.Context, *etcdserverpb.AuthenticateRequest) (*etcdserverpb.AuthenticateResponse, error) {
	return &etcdserverpb.AuthenticateResponse{Token: "ticket"}, nil
}
