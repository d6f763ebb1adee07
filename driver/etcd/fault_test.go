package etcd_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A load is callers of several clients that advance one tag without a pause, and give
// some of it back, until it ends.
type load struct {
	got    drivertest.Ranges
	calls  atomic.Int64
	failed atomic.Int64

	mu      sync.Mutex
	last    time.Time
	longest time.Duration // without any success
	reasons map[string]int

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

const loadCallers = 4 // of each client

func startLoad(t testing.TB, stores ...*kv.Store) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{cancel: cancel, last: time.Now(), reasons: make(map[string]int)}
	for _, s := range stores {
		for i := range loadCallers {
			l.wg.Go(func() { l.run(ctx, t, s, i == 0) })
		}
	}
	return l
}

func (l *load) run(ctx context.Context, t testing.TB, s *kv.Store, gives bool) {
	pause := time.NewTicker(2 * time.Millisecond)
	defer pause.Stop()
	for ctx.Err() == nil {
		l.calls.Add(1)
		grant, err := s.Advance(ctx, "order", 10)
		switch {
		case err == nil:
			l.success()
			l.keep(ctx, s, grant, gives)
		case ctx.Err() != nil:
		case errors.Is(err, leaf.ErrUnknownTag), errors.Is(err, leaf.ErrInvalid), errors.Is(err, segment.ErrNotCreated):
			t.Errorf("a fault of the cluster was blamed on the call: %v", err)
		default:
			l.failure(err)
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
		}
	}
}

// keep uses a range, or half of it if the other half goes back.
func (l *load) keep(ctx context.Context, s *kv.Store, grant segment.Grant, gives bool) {
	r := grant.Range
	if gives {
		r.End = r.Start + r.Len()/2
		_ = s.Return(ctx, "order", grant, r.End) // with either result, this caller does not use the IDs
	}
	l.got.Add(r)
}

func (l *load) success() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.longest = max(l.longest, now.Sub(l.last))
	l.last = now
}

func (l *load) failure(err error) {
	l.failed.Add(1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reasons[err.Error()]++
}

// awaitMore waits for n more successes.
func (l *load) awaitMore(t testing.TB, n int64) {
	t.Helper()
	ctx := within(t, 30*time.Second)
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for want := l.got.Count() + 5*n; l.got.Count() < want; {
		select {
		case <-poll.C:
		case <-ctx.Done():
			t.Fatalf("no allocations any more; failures so far: %v", l.reasons)
		}
	}
}

// end stops the load, and checks the ranges.
func (l *load) end(t testing.TB) {
	t.Helper()
	l.cancel()
	l.wg.Wait()
	t.Logf("%d calls, %d failed, the longest silence %v, failures: %v", l.calls.Load(), l.failed.Load(), l.longest.Round(time.Millisecond), l.reasons)
	if err := l.got.Check(); err != nil {
		t.Error(err)
	}
}

// cluster starts three members with a store, and returns clients of it, which begin
// with different members.
func cluster(t testing.TB, args ...string) (*testserver.EtcdCluster, []*kv.Store) {
	t.Helper()
	c := testserver.Etcd(t, &testserver.EtcdOptions{Members: 3, Args: args})
	o := &etcd.Options{}
	newStore(t, c, o, order)
	stores := make([]*kv.Store, 3)
	for i := range stores {
		stores[i] = open(t, c.Endpoints(), o)
	}
	return c, stores
}

func leader(t testing.TB, c *testserver.EtcdCluster) int {
	t.Helper()
	ctx := within(t, 20*time.Second)
	for {
		if i := c.Leader(); i >= 0 {
			return i
		}
		if ctx.Err() != nil {
			t.Fatal("no member leads")
		}
	}
}

// Each member of three is killed in turn, and comes back, under load: nothing is handed
// out twice, and the load goes on.
func TestMemberKilled(t *testing.T) {
	c, stores := cluster(t)
	l := startLoad(t, stores...)
	for i := range 3 {
		l.awaitMore(t, 200)
		if err := c.Kill(i); err != nil {
			t.Fatal(err)
		}
		l.awaitMore(t, 200)
		if err := c.Restart(i); err != nil {
			t.Fatal(err)
		}
	}
	l.awaitMore(t, 200)
	l.end(t)
}

// A member is lost with its disk, and another one joins in its place, under load. It
// then counts: one more may fail.
func TestMemberLost(t *testing.T) {
	c, stores := cluster(t, "--strict-reconfig-check=false") // which wants members to be up for five seconds
	operator := connect(t, c.Endpoints())
	l := startLoad(t, stores...)
	l.awaitMore(t, 200)
	lost := leader(t, c)
	if err := c.Kill(lost); err != nil {
		t.Fatal(err)
	}
	l.awaitMore(t, 200)
	replaceMember(t, operator, fmt.Sprintf("m%d", lost))
	if err := c.Replace(lost); err != nil {
		t.Fatal(err)
	}
	l.awaitMore(t, 200)
	if err := c.Kill((lost + 1) % 3); err != nil {
		t.Fatal(err)
	}
	l.awaitMore(t, 200)
	for range 6 { // the first member is chosen at random
		if _, err := open(t, c.Endpoints(), nil).Advance(within(t, 20*time.Second), "order", 1); err != nil {
			t.Error(err)
		}
	}
	l.end(t)
}

// replaceMember makes the cluster forget a member and expect another one at its address. A vanished
// member never answers, so the call repeats its requests.
func replaceMember(t testing.TB, operator *clientv3.Client, name string) {
	t.Helper()
	var members []*etcdserverpb.Member
	eventually(t, func() error {
		list, err := operator.MemberList(within(t, 5*time.Second))
		if err == nil {
			members = list.Members
		}
		return err
	})
	for _, m := range members {
		if m.Name != name {
			continue
		}
		eventually(t, func() error {
			_, err := operator.MemberRemove(within(t, 5*time.Second), m.ID)
			if errors.Is(err, rpctypes.ErrMemberNotFound) {
				return nil
			}
			return err
		})
		eventually(t, func() error {
			_, err := operator.MemberAdd(within(t, 5*time.Second), m.PeerURLs)
			if errors.Is(err, rpctypes.ErrPeerURLExist) {
				return nil
			}
			return err
		})
	}
}

// The leader is frozen, with all its connections: its clients go elsewhere.
func TestLeaderPaused(t *testing.T) {
	c, stores := cluster(t)
	l := startLoad(t, stores...)
	l.awaitMore(t, 200)
	i := leader(t, c)
	if err := c.Pause(i); err != nil {
		t.Fatal(err)
	}
	l.awaitMore(t, 200)
	for _, s := range stores { // also those that had used the frozen member
		if _, err := s.Advance(within(t, 20*time.Second), "order", 1); err != nil {
			t.Logf("after the pause: %v", err) // the call to the frozen member
		}
		if _, err := s.Advance(within(t, 20*time.Second), "order", 1); err != nil {
			t.Errorf("after another member was chosen: %v", err)
		}
	}
	if err := c.Resume(i); err != nil {
		t.Fatal(err)
	}
	l.awaitMore(t, 200)
	l.end(t)
}

// Without a majority calls fail, soon and with the reason; they succeed when it is back.
func TestNoMajority(t *testing.T) {
	c, stores := cluster(t)
	r := newRegistry(t, c, &etcd.Options{})(t)
	for _, i := range []int{0, 2} {
		if err := c.Kill(i); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stores {
		began := time.Now()
		_, err := s.Advance(within(t, 15*time.Second), "order", 1)
		if took := time.Since(began); err == nil || took > 14*time.Second {
			t.Errorf("got error %v after %v", err, took)
		}
		t.Log(time.Since(began).Round(time.Millisecond), err)
	}
	if _, err := r.Load(within(t, 15*time.Second), 7); err == nil {
		t.Error("a record was loaded that no majority confirmed")
	}
	for _, i := range []int{0, 2} { // both, because one alone waits for the other
		if err := c.Restart(i); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range stores {
		if _, err := s.Advance(within(t, 20*time.Second), "order", 1); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.Load(within(t, 15*time.Second), 7); err != nil {
		t.Error(err)
	}
}

// Compaction takes away the past, which nothing here needs.
func TestCompaction(t *testing.T) {
	open := newStore(t, shared, newOptions(), order)
	l := startLoad(t, open(t), open(t))
	etcdClient := connect(t, shared.Endpoints())
	for range 20 {
		l.awaitMore(t, 20)
		now, err := etcdClient.Get(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := etcdClient.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			for _, err := range open(t).Tags(t.Context()) {
				if err != nil {
					t.Error(err)
				}
			}
		}
	}
	l.end(t)
	if n := l.failed.Load(); n > 0 {
		t.Errorf("%d calls failed", n)
	}
}

// A full database refuses writes with the way out, and serves again after it.
func TestNoSpace(t *testing.T) {
	c := testserver.Etcd(t, &testserver.EtcdOptions{UnsafeNoFsync: true, Args: []string{"--quota-backend-bytes=262144"}})
	o := &etcd.Options{}
	s := newStore(t, c, o, order)(t)
	r := newRegistry(t, c, o)(t)
	filler := connect(t, c.Endpoints())
	var err error
	for i := 0; err == nil && i < 1000; i++ {
		_, err = filler.Put(t.Context(), "filler", string(make([]byte, 10000)))
	}
	_, advanceErr := s.Advance(t.Context(), "order", 1)
	_, swapErr := r.Swap(t.Context(), worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1})
	for what, err := range map[string]error{
		"advance": advanceErr, "swap": swapErr, "create": s.Create(t.Context(), segment.Tag{Name: "user", Step: 1}),
	} {
		says(t, what, err, "database is full", "compact", "defrag", "alarm disarm")
	}
	for tag, err := range s.Tags(t.Context()) {
		if err != nil || tag.MaxID != 1 {
			t.Errorf("a full store lists %+v, %v", tag, err)
		}
	}
	free(t, filler, c.Endpoints()[0])
	if grant, err := s.Advance(t.Context(), "order", 1); err != nil || grant.Range.Start != 1 {
		t.Errorf("after the way out: got %v, %v", grant.Range, err)
	}
}

// free follows the remedy in the error.
func free(t testing.TB, c *clientv3.Client, endpoint string) {
	t.Helper()
	now, err := c.Get(t.Context(), "filler")
	if err == nil {
		_, err = c.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = c.Defragment(t.Context(), endpoint)
	}
	if err == nil {
		_, err = c.AlarmDisarm(t.Context(), &clientv3.AlarmMember{})
	}
	if err != nil {
		t.Fatal(err)
	}
}
