package frontend

import (
	"context"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// StatusCanceled is the HTTP status of a request whose client has gone; only the log reads it.
const StatusCanceled = 499

// RetryAfter returns the value of the header of that name: the seconds until a caller may retry
// after err; "" if a retry is useless.
func RetryAfter(err error) string {
	if delay := RetryDelay(err); delay > 0 {
		return strconv.FormatFloat(math.Ceil(delay.Seconds()), 'f', 0, 64)
	}
	return ""
}

// RetryDelay returns the time until a caller may retry after err; 0 if a retry is useless.
func RetryDelay(err error) time.Duration {
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		return max(limit.RetryAfter, 0)
	}
	if KindOf(err).Retry {
		return retryAfter
	}
	return 0
}

// retryAfter is the advised delay with [Kind.Retry].
const retryAfter = time.Second

// A Kind is the form of an error for callers.
type Kind struct {
	HTTP  int          // status of HTTP routes, except Java Leaf's
	RPC   connect.Code // code of gRPC and Connect
	Java  int          // number in Java Leaf's error text; 0: Java has no such error
	Retry bool         // a later call may succeed without any change

	// Reason is for programs to branch on, if the codes are too coarse. It never changes.
	Reason string
}

// The first match counts. If an error wraps several, such as an exhausted stock with the store's
// time-out behind it, the caller gets the most useful one. A missing lease and an exhausted stock
// come first: they wrap errors of the registry or the store, which are never about the caller's
// request.
var kinds = []struct {
	err  error
	kind Kind
}{
	{access.ErrUnauthenticated, Kind{HTTP: http.StatusUnauthorized, RPC: connect.CodeUnauthenticated, Reason: "UNAUTHENTICATED"}},
	{access.ErrForbidden, Kind{HTTP: http.StatusForbidden, RPC: connect.CodePermissionDenied, Reason: "FORBIDDEN"}},
	{access.ErrLimit, Kind{HTTP: http.StatusTooManyRequests, RPC: connect.CodeResourceExhausted, Retry: true, Reason: "RATE_LIMITED"}},
	{ErrNoRoute, Kind{HTTP: http.StatusNotFound, RPC: connect.CodeUnimplemented, Reason: "NO_ROUTE"}},
	{ErrMethod, Kind{HTTP: http.StatusMethodNotAllowed, RPC: connect.CodeUnimplemented, Reason: "METHOD_NOT_ALLOWED"}},
	{leaf.ErrClock, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -1, Retry: true, Reason: "CLOCK_BEHIND"}},
	{issuer.ErrRegistry, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true, Reason: "REGISTRY_UNAVAILABLE"}},
	{leaf.ErrNoLease, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -3, Retry: true, Reason: "NO_WORKER_ID"}},
	{worker.ErrNotCreated, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true, Reason: "REGISTRY_NOT_CREATED"}},
	{worker.ErrNoneFree, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true, Reason: "NO_FREE_WORKER_ID"}},
	{worker.ErrWaiting, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true, Reason: "CLAIM_WAITS"}},
	{worker.ErrClockOff, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true, Reason: "CLOCK_OFF"}},
	{worker.ErrLeaseLost, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition, Reason: "LEASE_LOST"}},
	{worker.ErrNoPool, Kind{HTTP: http.StatusNotFound, RPC: connect.CodeNotFound, Reason: "UNKNOWN_POOL"}},
	{worker.ErrPoolExists, Kind{HTTP: http.StatusConflict, RPC: connect.CodeAlreadyExists, Reason: "POOL_EXISTS"}},
	{segment.ErrMaskKey, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -3, Retry: true, Reason: "MASK_KEY"}},
	{leaf.ErrExhausted, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -3, Retry: true, Reason: "EXHAUSTED"}},
	{issuer.ErrBadKey, Kind{HTTP: http.StatusBadRequest, RPC: connect.CodeInvalidArgument, Java: -2, Reason: "BAD_KEY"}}, // a tag that Java Leaf does not have
	{leaf.ErrNotContiguous, Kind{HTTP: http.StatusBadRequest, RPC: connect.CodeInvalidArgument, Reason: "NOT_CONTIGUOUS"}},
	{leaf.ErrInvalid, Kind{HTTP: http.StatusBadRequest, RPC: connect.CodeInvalidArgument, Reason: "INVALID_ARGUMENT"}},
	{issuer.ErrSchemeOff, Kind{HTTP: http.StatusNotImplemented, RPC: connect.CodeUnimplemented, Reason: "SCHEME_DISABLED"}},
	{issuer.ErrNoScheme, Kind{HTTP: http.StatusNotFound, RPC: connect.CodeUnimplemented, Reason: "UNKNOWN_SCHEME"}},
	{leaf.ErrUnknownTag, Kind{HTTP: http.StatusNotFound, RPC: connect.CodeNotFound, Java: -2, Reason: "UNKNOWN_TAG"}},
	{leaf.ErrTagExists, Kind{HTTP: http.StatusConflict, RPC: connect.CodeAlreadyExists, Reason: "TAG_EXISTS"}},
	{segment.ErrMasked, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition, Reason: "MASKED"}},
	{segment.ErrPeriodic, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition, Reason: "PERIODIC"}},
	{segment.ErrStrict, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition, Reason: "STRICT_ORDER"}},
	{issuer.ErrHeld, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition, Reason: "WORKER_HELD"}},
	{worker.ErrNewer, Kind{HTTP: http.StatusInternalServerError, RPC: connect.CodeFailedPrecondition, Reason: "NEWER_FORMAT"}},
	{worker.ErrConflict, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition, Reason: "CONFLICT"}},
	{leaf.ErrRegression, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition, Reason: "WOULD_GO_BACKWARDS"}},
	{leaf.ErrOverflow, Kind{HTTP: http.StatusInternalServerError, RPC: connect.CodeOutOfRange, Java: -3, Reason: "OVERFLOW"}},
	{leaf.ErrUnsupported, Kind{HTTP: http.StatusInternalServerError, RPC: connect.CodeUnimplemented, Java: -3, Reason: "UNSUPPORTED"}},
	{leaf.ErrClosed, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true, Reason: "STOPPING"}},
	{context.DeadlineExceeded, Kind{HTTP: http.StatusGatewayTimeout, RPC: connect.CodeDeadlineExceeded, Reason: "DEADLINE_EXCEEDED"}},
	{context.Canceled, Kind{HTTP: StatusCanceled, RPC: connect.CodeCanceled, Reason: "CANCELED"}},
}

// The kinds of other errors: those of a store or registry, and all the rest.
var (
	storeAway = Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -3, Retry: true, Reason: "STORE_UNAVAILABLE"}
	internal  = Kind{HTTP: http.StatusInternalServerError, RPC: connect.CodeInternal, Java: -3, Reason: "INTERNAL"}
)

// Reasons returns the reason of every [Kind].
func Reasons() []string {
	reasons := []string{storeAway.Reason, internal.Reason}
	for _, k := range kinds {
		reasons = append(reasons, k.kind.Reason)
	}
	return reasons
}

// KindOf returns the kind of err, which must not be nil.
func KindOf(err error) Kind {
	_, kind := titled(err)
	return kind
}

// titled returns the kind of err with the title of that kind.
func titled(err error) (title string, _ Kind) {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.err.Error(), k.kind
		}
	}
	if _, ok := errors.AsType[*leaf.StoreError](err); ok {
		return "the store is unavailable", storeAway
	}
	return "internal error", internal
}
