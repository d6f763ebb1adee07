package memory_test

import (
	"errors"
	"strconv"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// TestStore holds the store against the definition of one; every client of a backend
// is the same Store, since its state is nowhere else.
func TestStore(t *testing.T) {
	drivertest.TestStore(t, func(testing.TB) drivertest.StoreBackend {
		store := memory.New().Store()
		return drivertest.StoreBackend{Open: func(testing.TB) segment.Store { return store }}
	})
}

func TestMany(t *testing.T) {
	drivertest.TestMany(t, memory.New().Store(), memory.New().Registry(), 1024)
}

// All worker IDs that there can be are listed.
func TestEveryWorkerID(t *testing.T) {
	testserver.Long(t)
	const n = 524_288
	db := memory.New()
	text, err := worker.Record{Term: 1}.MarshalText()
	for i := 0; i < n && err == nil; i++ { // faster than the swaps of a registry
		_, err = db.Backend.Swap(t.Context(), kv.Cell{Key: kv.Key{Kind: kv.Workers, Name: strconv.Itoa(i)}}, string(text))
	}
	records, failed := db.Registry().List(t.Context())
	if err = errors.Join(err, failed); err != nil || len(records) != n || records[n-1].Worker != n-1 {
		t.Errorf("listed %d records of %d: %v", len(records), n, err)
	}
}
