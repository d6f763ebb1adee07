package testserver

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/leaf-id/leaf/internal/datadir"
)

// FreeWorker returns a worker ID, at most limit, that no process of this machine holds
// by static:. Tests that run at the same time must not take one number for theirs.
func FreeWorker(t testing.TB, limit int) int {
	t.Helper()
	for range 100 * limit {
		id := rand.IntN(limit + 1)
		if lock, err := datadir.LockMachine(fmt.Sprintf("static-%d", id)); err == nil {
			_ = lock.Close()
			return id
		}
	}
	t.Fatalf("all of the worker IDs 0 … %d are in use by static: on this machine", limit)
	return 0
}
