package server_test

import (
	"strings"
	"testing"
)

// The server counts each request with a key cut as in Java Leaf, and logs each such key once.
func TestCutKeys(t *testing.T) {
	r := run(t, nil, nil)
	for range 3 {
		if status, body, err := r.get("/api/segment/get/order.v1"); status != 200 || err != nil {
			t.Fatalf("%d %q, %v", status, body, err)
		}
	}
	_, metrics, err := r.get("/metrics")
	if err != nil || !strings.Contains(metrics, "leaf_java_cut_keys_total 3\n") {
		t.Errorf("no count of 3 in the metrics: %v", err)
	}
	if n := strings.Count(r.log.String(), "name=order.v1"); n != 1 {
		t.Errorf("%d lines of log, want 1:\n%s", n, r.log)
	}
}
