package drivertest

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// TestIncarnation checks that a registry that may lose writes names the epoch of its server,
// and another one after restart has started that server again.
func TestIncarnation(t *testing.T, r worker.LossyRegistry, restart func()) {
	t.Helper()
	before := awaitIncarnation(t, r, "")
	if again := awaitIncarnation(t, r, ""); again != before {
		t.Errorf("incarnation %q, then %q, of a server that stands", before, again)
	}
	restart()
	awaitIncarnation(t, r, before)
}

// awaitIncarnation returns the incarnation once it is known, and not old.
func awaitIncarnation(t *testing.T, r worker.LossyRegistry, old string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		epoch, err := r.ServerEpoch(t.Context())
		if err == nil && !epoch.Lossy {
			t.Fatalf("it loses nothing: %+v", epoch)
		}
		if err == nil && epoch.Incarnation != "" && epoch.Incarnation != old {
			return epoch.Incarnation
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v, %v, after %q", epoch, err, old)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
