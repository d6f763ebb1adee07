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
	"github.com/leaf-id/leaf/worker"
)

// StatusCanceled is the HTTP status of a request whose client has gone; only
// the log reads it.
const StatusCanceled = 499

// RetryAfter returns the value of the header of that name: after how many seconds a caller
// may try again what failed with err; "" where that is of no use.
func RetryAfter(err error) string {
	if limit, ok := errors.AsType[*access.LimitError](err); ok {
		if limit.RetryAfter <= 0 {
			return ""
		}
		return strconv.FormatFloat(math.Ceil(limit.RetryAfter.Seconds()), 'f', 0, 64)
	}
	if KindOf(err).Retry {
		return strconv.Itoa(int(retryAfter / time.Second))
	}
	return ""
}

// retryAfter is how long a caller is told to wait where [Kind.Retry] is set.
const retryAfter = time.Second

// A Kind is how an error is told to a caller.
type Kind struct {
	HTTP  int          // status of HTTP routes that are not Java Leaf's
	RPC   connect.Code // code of gRPC and Connect
	Java  int          // number in Java Leaf's error text; 0: Java has no such error
	Retry bool         // a later call may succeed without any change
}

// The first match counts: an error that wraps several, like an exhausted stock and the
// store's time-out behind it, is told by the one that says most to a caller. A missing
// lease and an exhausted stock come first, since they wrap whatever the registry or the
// store said, which is never about what the caller asked for.
var kinds = []struct {
	err  error
	kind Kind
}{
	{access.ErrUnauthenticated, Kind{HTTP: http.StatusUnauthorized, RPC: connect.CodeUnauthenticated}},
	{access.ErrForbidden, Kind{HTTP: http.StatusForbidden, RPC: connect.CodePermissionDenied}},
	{access.ErrLimit, Kind{HTTP: http.StatusTooManyRequests, RPC: connect.CodeResourceExhausted, Retry: true}},
	{leaf.ErrClock, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -1, Retry: true}},
	{issuer.ErrRegistry, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true}},
	{leaf.ErrNoLease, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -3, Retry: true}},
	{leaf.ErrExhausted, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Java: -3, Retry: true}},
	{issuer.ErrBadKey, Kind{HTTP: http.StatusBadRequest, RPC: connect.CodeInvalidArgument, Java: -2}}, // a tag that Java Leaf does not have
	{leaf.ErrInvalid, Kind{HTTP: http.StatusBadRequest, RPC: connect.CodeInvalidArgument}},
	{issuer.ErrSchemeOff, Kind{HTTP: http.StatusNotImplemented, RPC: connect.CodeUnimplemented}},
	{leaf.ErrUnknownTag, Kind{HTTP: http.StatusNotFound, RPC: connect.CodeNotFound, Java: -2}},
	{leaf.ErrTagExists, Kind{HTTP: http.StatusConflict, RPC: connect.CodeAlreadyExists}},
	{issuer.ErrHeld, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition}},
	{worker.ErrConflict, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition}},
	{leaf.ErrRegression, Kind{HTTP: http.StatusConflict, RPC: connect.CodeFailedPrecondition}},
	{leaf.ErrOverflow, Kind{HTTP: http.StatusInternalServerError, RPC: connect.CodeOutOfRange, Java: -3}},
	{leaf.ErrUnsupported, Kind{HTTP: http.StatusInternalServerError, RPC: connect.CodeUnimplemented, Java: -3}},
	{leaf.ErrClosed, Kind{HTTP: http.StatusServiceUnavailable, RPC: connect.CodeUnavailable, Retry: true}},
	{context.DeadlineExceeded, Kind{HTTP: http.StatusGatewayTimeout, RPC: connect.CodeDeadlineExceeded}},
	{context.Canceled, Kind{HTTP: StatusCanceled, RPC: connect.CodeCanceled}},
}

// KindOf returns the kind of err, which is not nil.
func KindOf(err error) Kind {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return Kind{HTTP: http.StatusInternalServerError, RPC: connect.CodeInternal, Java: -3}
}
