package memory_test

import (
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// TestStore holds the store against the definition of one; every client of a backend
// is the same Store, since its state is nowhere else.
func TestStore(t *testing.T) {
	drivertest.TestStore(t, func(testing.TB) drivertest.StoreBackend {
		store := memory.New()
		return drivertest.StoreBackend{Open: func(testing.TB) segment.Store { return store }}
	})
}

// All worker IDs that there can be, and as many tags, are listed.
func TestMany(t *testing.T) {
	s := memory.New()
	drivertest.TestMany(t, s, s, memory.NewRegistry(), 524_288)
}
