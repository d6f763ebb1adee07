package etcd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// Members of two clusters in one URL are refused, whichever a client begins with, until
// those of one are left.
func TestTwoClusters(t *testing.T) {
	other, o := testserver.Etcd(t, nil), newOptions()
	mine, theirs := newStore(t, shared, o, order)(t), newStore(t, other, o, order)(t)
	newRegistry(t, shared, o)
	newRegistry(t, other, o)
	first, err1 := mine.Advance(t.Context(), "order", 10)
	second, err2 := theirs.Advance(t.Context(), "order", 10)
	if err := errors.Join(err1, err2); err != nil || first.Server == "" || first.Server == second.Server {
		t.Fatalf("granted by %q and %q, %v, want two clusters", first.Server, second.Server, err)
	}
	both := append(shared.Endpoints(), other.Endpoints()...)
	refused := func(what string, err error) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), both[0]) || !strings.Contains(err.Error(), both[1]) || !strings.Contains(err.Error(), "one cluster") {
			t.Errorf("%s: got error %v, want one that names both members", what, err)
		}
	}
	var stores []*kv.Store
	for range 6 { // the first member is chosen at random
		s := open(t, both, o)
		for range 2 {
			_, err := s.Advance(t.Context(), "order", 10)
			refused("advance", err)
		}
		stores = append(stores, s)
		_, err := openRegistry(t, both, o).Load(t.Context(), 7)
		refused("load", err)
		_, err = openRegistry(t, both, o).Swap(t.Context(), worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1})
		refused("swap", err)
	}
	for what, s := range map[string]*kv.Store{"shared": mine, "other": theirs} {
		if grant, err := s.Advance(t.Context(), "order", 10); err != nil || grant.Range != (leaf.Range{Start: 11, End: 21}) {
			t.Errorf("%s: got %v, %v: something was written", what, grant.Range, err)
		}
	}
	if err := other.Kill(0); err != nil {
		t.Fatal(err)
	}
	for _, s := range append(stores, open(t, both, o)) {
		if grant, err := s.Advance(within(t, 10*time.Second), "order", 10); err != nil || grant.Server != first.Server {
			t.Errorf("with one cluster left: got %+v, %v", grant, err)
		}
	}
}

// A registry and a store are created although a member is down, whichever a client begins
// with.
func TestInitWithMemberDown(t *testing.T) {
	c := testserver.Etcd(t, &testserver.EtcdOptions{Members: 3})
	if err := c.Kill((leader(t, c) + 1) % 3); err != nil { // not the leader: until the next one all calls fail
		t.Fatal(err)
	}
	for range 8 { // the first member is chosen at random
		db, err := etcd.Open(c.Endpoints(), newOptions())
		if err != nil {
			t.Fatal(err)
		}
		ctx := within(t, 20*time.Second)
		if err := errors.Join(db.InitRegistry(ctx), db.Init(ctx, nil), db.Close()); err != nil {
			t.Errorf("got error %v, want none", err)
		}
	}
}

// The client finds an initially absent member of another cluster at its first answer.
func TestStrayMemberTurnedTo(t *testing.T) {
	stray, o := testserver.Etcd(t, nil), newOptions()
	newStore(t, stray, o, order)
	home := testserver.Etcd(t, nil)
	newStore(t, home, o, order)
	if err := stray.Kill(0); err != nil {
		t.Fatal(err)
	}
	s := open(t, append(home.Endpoints(), stray.Endpoints()...), o)
	if _, err := s.Advance(t.Context(), "order", 10); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stray.Restart(0), home.Kill(0)); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		if grant, err := s.Advance(within(t, 10*time.Second), "order", 10); err == nil {
			t.Fatalf("got %v, of another cluster", grant.Range)
		} else if strings.Contains(err.Error(), "one cluster") {
			return
		}
	}
	t.Error("the other cluster was not named")
}
