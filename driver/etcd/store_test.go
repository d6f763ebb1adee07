package etcd_test

import (
	"fmt"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/kvtest"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// TestStore holds the store against the definition of one.
func TestStore(t *testing.T) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		o := newOptions()
		newStore(t, shared, o)
		return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return kvtest.Store(openDB(t, shared.Endpoints(), o)) }}
	})
}

// TestRegistry holds the registry against the definition of one.
func TestRegistry(t *testing.T) {
	drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
		o := newOptions()
		newRegistry(t, shared, o)
		return drivertest.RegistryBackend{
			Open: func(t testing.TB) worker.Registry { return kvtest.Registry(openDB(t, shared.Endpoints(), o)) },
			Corrupt: func(t testing.TB, id int64, text string) {
				put(t, shared.Endpoints(), o.Prefix+"/workers/"+strconv.FormatInt(id, 10), text)
			},
		}
	})
}

// The endpoints of a client may be host:port, which is no URL for the clock.
func TestClockOfAClient(t *testing.T) {
	for _, scheme := range []string{"", "http://"} {
		db, err := etcd.New(connect(t, []string{scheme + shared.Endpoints()[0]}), newOptions())
		if err != nil {
			t.Fatal(err)
		}
		if err := db.InitRegistry(t.Context()); err != nil {
			t.Fatal(err)
		}
		if now, err := db.Registry().Clock(t.Context()); err != nil || now.IsZero() {
			t.Errorf("endpoint with scheme %q: the clock says %v, %v", scheme, now, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Many cells are listed. The library itself writes them, many at once: with a swap
// for each that takes most of an hour.
func TestMany(t *testing.T) {
	const atOnce = 128 // etcd allows no more
	o := newOptions()
	s, r := newStore(t, shared, o)(t), newRegistry(t, shared, o)(t)
	c := connect(t, shared.Endpoints())
	for first := 0; first < many; first += atOnce / 2 {
		var puts []clientv3.Op
		for i := int64(first); i < int64(first+atOnce/2); i++ {
			record, err := drivertest.ManyRecord(i).MarshalText()
			if err != nil {
				t.Fatal(err)
			}
			tag := drivertest.ManyTag(i)
			puts = append(puts, clientv3.OpPut(o.Prefix+"/tags/"+tag.Name, fmt.Sprintf(`{"v":1,"step":%d}`, tag.Step)),
				clientv3.OpPut(fmt.Sprintf("%s/workers/%d", o.Prefix, i), string(record)))
		}
		if _, err := c.Txn(t.Context()).Then(puts...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
	drivertest.TestListed(t, s, r, many)
}
