package frontend_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/worker"
)

// The alert on failed requests counts every reason except the caller's own faults.
func TestAlertCountsFailures(t *testing.T) {
	rules, err := os.ReadFile("../../../deploy/prometheus/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`leaf_request_errors_total\{cause=~"([A-Z_|]+)"`).FindSubmatch(rules)
	if m == nil {
		t.Fatal("no rule for failed requests")
	}
	counted := strings.Split(string(m[1]), "|")
	upToCallers := []string{
		"UNAUTHENTICATED", "FORBIDDEN", "RATE_LIMITED", "NO_ROUTE", "UNKNOWN_SCHEME", "METHOD_NOT_ALLOWED", "BAD_KEY", "NOT_CONTIGUOUS", "INVALID_ARGUMENT",
		"SCHEME_DISABLED", "UNKNOWN_TAG", "TAG_EXISTS", "STRICT_ORDER", "PERIODIC", "MASKED", "WORKER_HELD", "CONFLICT", "WOULD_GO_BACKWARDS", "CANCELED",
		"LEASE_LOST", "UNKNOWN_POOL", "POOL_EXISTS", "NO_FREE_WORKER_ID", "CLAIM_WAITS",
		"STOPPING", // they ask another server
	}
	for _, reason := range frontend.Reasons() {
		if slices.Contains(counted, reason) == slices.Contains(upToCallers, reason) {
			t.Errorf("%s must be either counted or up to callers", reason)
		}
	}
}

func TestOf(t *testing.T) {
	exhausted := frontend.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Java: -3, Retry: true, Reason: "EXHAUSTED"}
	noLease := frontend.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Java: -3, Retry: true, Reason: "NO_WORKER_ID"}
	tests := []struct {
		err  error
		want frontend.Kind
	}{
		{leaf.ErrUnknownTag, frontend.Kind{HTTP: 404, RPC: connect.CodeNotFound, Java: -2, Reason: "UNKNOWN_TAG"}},
		{leaf.ErrExhausted, exhausted},
		{fmt.Errorf("%w: %w", leaf.ErrExhausted, context.DeadlineExceeded), exhausted},
		{errors.Join(context.Canceled, leaf.ErrExhausted), exhausted},
		{leaf.ErrOverflow, frontend.Kind{HTTP: 500, RPC: connect.CodeOutOfRange, Java: -3, Reason: "OVERFLOW"}},
		{leaf.ErrInvalid, frontend.Kind{HTTP: 400, RPC: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT"}},
		{leaf.ErrNotContiguous, frontend.Kind{HTTP: 400, RPC: connect.CodeInvalidArgument, Reason: "NOT_CONTIGUOUS"}},
		{leaf.ErrTagExists, frontend.Kind{HTTP: 409, RPC: connect.CodeAlreadyExists, Reason: "TAG_EXISTS"}},
		{leaf.ErrRegression, frontend.Kind{HTTP: 409, RPC: connect.CodeFailedPrecondition, Reason: "WOULD_GO_BACKWARDS"}},
		{leaf.ErrUnsupported, frontend.Kind{HTTP: 500, RPC: connect.CodeUnimplemented, Java: -3, Reason: "UNSUPPORTED"}},
		{fmt.Errorf("%w: %w", leaf.ErrExhausted, leaf.ErrUnsupported), exhausted},
		{issuer.ErrSchemeOff, frontend.Kind{HTTP: 501, RPC: connect.CodeUnimplemented, Reason: "SCHEME_DISABLED"}},
		{leaf.ErrClosed, frontend.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Retry: true, Reason: "STOPPING"}},
		{context.Canceled, frontend.Kind{HTTP: 499, RPC: connect.CodeCanceled, Reason: "CANCELED"}},
		{context.DeadlineExceeded, frontend.Kind{HTTP: 504, RPC: connect.CodeDeadlineExceeded, Reason: "DEADLINE_EXCEEDED"}},
		{leaf.ErrNoLease, noLease},
		{fmt.Errorf("%w: ask the registry: %w", leaf.ErrNoLease, leaf.ErrInvalid), noLease},
		{leaf.ErrClock, frontend.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Java: -1, Retry: true, Reason: "CLOCK_BEHIND"}},
		{access.ErrUnauthenticated, frontend.Kind{HTTP: 401, RPC: connect.CodeUnauthenticated, Reason: "UNAUTHENTICATED"}},
		{access.ErrNoCredentials, frontend.Kind{HTTP: 403, RPC: connect.CodePermissionDenied, Reason: "FORBIDDEN"}},
		{&access.LimitError{}, frontend.Kind{HTTP: 429, RPC: connect.CodeResourceExhausted, Retry: true, Reason: "RATE_LIMITED"}},
		{issuer.ErrHeld, frontend.Kind{HTTP: 409, RPC: connect.CodeFailedPrecondition, Reason: "WORKER_HELD"}},
		{worker.ErrConflict, frontend.Kind{HTTP: 409, RPC: connect.CodeFailedPrecondition, Reason: "CONFLICT"}},
		{errors.New("dial tcp: refused"), frontend.Kind{HTTP: 500, RPC: connect.CodeInternal, Java: -3, Reason: "INTERNAL"}},
		{&leaf.StoreError{Err: errors.New("dial tcp: refused")}, frontend.Kind{HTTP: 503, RPC: connect.CodeUnavailable, Java: -3, Retry: true, Reason: "STORE_UNAVAILABLE"}},
		{&leaf.StoreError{Err: leaf.ErrTagExists}, frontend.Kind{HTTP: 409, RPC: connect.CodeAlreadyExists, Reason: "TAG_EXISTS"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, frontend.KindOf(fmt.Errorf("wrapped: %w", tt.err))); diff != "" {
			t.Errorf("%v: %s", tt.err, diff)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{leaf.ErrExhausted, "1"},
		{leaf.ErrUnknownTag, ""},
		{&access.LimitError{RetryAfter: time.Millisecond}, "1"},
		{&access.LimitError{RetryAfter: 61 * time.Second}, "61"},
		{&access.LimitError{RetryAfter: 61*time.Second + 1}, "62"},
		{&access.LimitError{}, ""},
	} {
		if got := frontend.RetryAfter(fmt.Errorf("wrapped: %w", tt.err)); got != tt.want {
			t.Errorf("%#v: %q, want %q", tt.err, got, tt.want)
		}
	}
}
