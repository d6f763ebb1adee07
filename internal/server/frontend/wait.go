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
