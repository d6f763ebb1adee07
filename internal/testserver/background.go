package testserver

import (
	"context"
	"testing"
)

// Background calls run until the end of the test, which fails with the error of run.
func Background(t testing.TB, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
