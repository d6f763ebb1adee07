package leafconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// ErrDenied says that the token is missing, wrong, or lacks the right.
var ErrDenied = errors.New("the server does not allow it: the token is missing, expired, or lacks the right")

// errAway is wrapped where a server, or its store, cannot be reached.
var errAway = errors.New("is unavailable")

// reasons translate a server's answers.
var reasons = map[string]error{
	"BAD_KEY":              leaf.ErrInvalid,
	"CLOCK_BEHIND":         leaf.ErrClock,
	"CONFLICT":             worker.ErrConflict,
	"DEADLINE_EXCEEDED":    errAway,
	"EXHAUSTED":            leaf.ErrExhausted,
	"FORBIDDEN":            ErrDenied,
	"INVALID_ARGUMENT":     leaf.ErrInvalid,
	"MASKED":               segment.ErrMasked,
	"MASK_KEY":             segment.ErrMaskKey,
	"NEWER_FORMAT":         worker.ErrNewer,
	"NOT_CONTIGUOUS":       leaf.ErrNotContiguous,
	"NO_WORKER_ID":         leaf.ErrNoLease,
	"OVERFLOW":             leaf.ErrOverflow,
	"PERIODIC":             segment.ErrPeriodic,
	"REGISTRY_NOT_CREATED": worker.ErrNotCreated,
	"SCHEME_DISABLED":      leaf.ErrUnsupported,
	"STOPPING":             errAway,
	"STORE_UNAVAILABLE":    errAway,
	"STRICT_ORDER":         segment.ErrStrict,
	"TAG_EXISTS":           leaf.ErrTagExists,
	"UNAUTHENTICATED":      ErrDenied,
	"UNKNOWN_TAG":          leaf.ErrUnknownTag,
	"UNSUPPORTED":          leaf.ErrUnsupported,
	"WOULD_GO_BACKWARDS":   leaf.ErrRegression,
}

// An answer is an error that a server told.
type answer struct {
	host, text string
	kind       error // nil: callers do not branch on it
}

func (a *answer) Error() string { return fmt.Sprintf("leaf server %s: %s", a.host, a.text) }
func (a *answer) Unwrap() error { return a.kind }

// explain returns err as callers branch on it.
func explain(ctx context.Context, s *server, err error) error {
	if err == nil {
		return nil
	}
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("leaf server %s: %w", s.host, ended)
	}
	coded, ok := errors.AsType[*connect.Error](err)
	switch {
	case !ok:
		return fmt.Errorf("leaf server %s: %w", s.host, err)
	case !connect.IsWireError(err):
		return fmt.Errorf("leaf server %s %w: %w", s.host, errAway, cmp.Or(coded.Unwrap(), err))
	}
	return &answer{s.host, coded.Message(), reasons[reasonOf(coded)]}
}

// reasonOf returns the reason in the details of an error.
func reasonOf(err *connect.Error) string {
	for _, d := range err.Details() {
		if value, e := d.Value(); e == nil {
			if info, ok := value.(*errdetails.ErrorInfo); ok {
				return info.GetReason()
			}
		}
	}
	return ""
}
