package worker_test

import (
	"fmt"
	"testing"

	"github.com/leaf-id/leaf/worker"
)

// A record with many layouts.
func TestStaticKeepsManyLayouts(t *testing.T) {
	path := t.TempDir() + "/static-1"
	s, err := worker.OpenStatic(openFile(t, path), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	old, _ := s.Load(t.Context(), 1)
	for i := range 64 {
		next := old
		next.Instance, next.Term = worker.NewInstance(), old.Term+1
		next.Layouts = append(append([]worker.ServedLayout{}, old.Layouts...), worker.ServedLayout{Name: fmt.Sprintf("layout-%02d-of-the-order-service", i), Epoch: 1767225600000, Tick: 1, TimeBits: 41, WorkerBits: 10, SequenceBits: 12})
		if _, err := s.Swap(t.Context(), old, next); err != nil {
			t.Fatalf("with %d layouts ever served: %v", i+1, err)
		}
		old = next
		if read, err := worker.Inspect().ReadStatic(path, 1); err != nil || !read.Equal(next) {
			t.Fatalf("the file holds %+v, %v, want %+v", read, err, next)
		}
	}
}
