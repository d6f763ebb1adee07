package testserver

import "testing"

// Long leaves a test that takes many seconds, or much of the processor, to make test-all, which the
// CI runs: in short mode the test stops here.
func Long(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs with make test-all")
	}
}
