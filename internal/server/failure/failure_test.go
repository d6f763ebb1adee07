package failure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/failure"
	"github.com/leaf-id/leaf/worker"
)

func TestOf(t *testing.T) {
	exhausted := failure.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Java: -3, Retry: true}
	tests := []struct {
		err  error
		want failure.Kind
	}{
		{leaf.ErrUnknownTag, failure.Kind{HTTP: 404, RPC: connect.CodeNotFound, Java: -2}},
		{leaf.ErrExhausted, exhausted},
		{fmt.Errorf("%w: %w", leaf.ErrExhausted, context.DeadlineExceeded), exhausted},
		{errors.Join(context.Canceled, leaf.ErrExhausted), exhausted},
		{leaf.ErrOverflow, failure.Kind{HTTP: 500, RPC: connect.CodeOutOfRange, Java: -3}},
		{leaf.ErrInvalid, failure.Kind{HTTP: 400, RPC: connect.CodeInvalidArgument}},
		{leaf.ErrTagExists, failure.Kind{HTTP: 409, RPC: connect.CodeAlreadyExists}},
		{leaf.ErrRegression, failure.Kind{HTTP: 409, RPC: connect.CodeFailedPrecondition}},
		{leaf.ErrUnsupported, failure.Kind{HTTP: 500, RPC: connect.CodeUnimplemented, Java: -3}},
		{fmt.Errorf("%w: %w", leaf.ErrExhausted, leaf.ErrUnsupported), exhausted},
		{issuer.ErrSchemeOff, failure.Kind{HTTP: 501, RPC: connect.CodeUnimplemented}},
		{leaf.ErrClosed, failure.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Retry: true}},
		{context.Canceled, failure.Kind{HTTP: 499, RPC: connect.CodeCanceled}},
		{context.DeadlineExceeded, failure.Kind{HTTP: 504, RPC: connect.CodeDeadlineExceeded}},
		{leaf.ErrNoLease, exhausted},
		{fmt.Errorf("%w: ask the registry: %w", leaf.ErrNoLease, leaf.ErrInvalid), exhausted},
		{leaf.ErrClock, failure.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Java: -1, Retry: true}},
		{issuer.ErrHeld, failure.Kind{HTTP: 409, RPC: connect.CodeFailedPrecondition}},
		{worker.ErrConflict, failure.Kind{HTTP: 409, RPC: connect.CodeFailedPrecondition}},
		{errors.New("dial tcp: refused"), failure.Kind{HTTP: 500, RPC: connect.CodeInternal, Java: -3}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, failure.Of(fmt.Errorf("wrapped: %w", tt.err))); diff != "" {
			t.Errorf("%v: %s", tt.err, diff)
		}
	}
}
