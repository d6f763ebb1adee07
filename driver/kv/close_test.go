package kv_test

import (
	"testing"

	"github.com/leaf-id/leaf/driver/memory"
)

// Close waits for the goroutines of all counters, also while callers arrive.
func TestCloseBesideCalls(t *testing.T) {
	for range 50 {
		db := open(t, memory.NewBackend())
		if err := db.Init(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		s := db.Store()
		if err := s.Create(t.Context(), order); err != nil {
			t.Fatal(err)
		}
		begun, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			_, err := s.Advance(t.Context(), "order", 1)
			for close(begun); err == nil; {
				_, err = s.Advance(t.Context(), "order", 1)
			}
		}()
		<-begun
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		<-over
	}
}
