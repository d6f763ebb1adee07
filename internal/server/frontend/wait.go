package frontend

import (
	"context"
	"fmt"
)

// ErrWaits is wrapped by the error of a call with [NoWait] that would have to wait.
var ErrWaits = fmt.Errorf("the store is asked: %w", context.Canceled)

// NoWait is a context for calls that fail where they would have to wait.
var NoWait = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(ErrWaits)
	return ctx
}()

// Within waits for f, which has no limit of its own, until ctx ends. The error is why ctx ended.
func Within(ctx context.Context, f func()) error {
	done := make(chan struct{})
	go func() {
		f()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
