package telemetry

import (
	"context"
	"errors"
	"net"

	"github.com/leaf-id/leaf"
)

// Why a call to a store failed.
const (
	causeTimeout     = "TIMEOUT"
	causeUnknownTag  = "UNKNOWN_TAG"
	causeUnfit       = "UNFIT" // an operator has to mend it
	causeOverflow    = "OVERFLOW"
	causeUnavailable = "UNAVAILABLE"
)

// NewStoreCalls returns counters of the allocations of one store.
func NewStoreCalls() *Requests {
	return NewRequests([]string{causeTimeout, causeUnknownTag, causeUnfit, causeOverflow, causeUnavailable})
}

func storeCause(err error) string {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return causeTimeout
	case errors.Is(err, leaf.ErrUnknownTag):
		return causeUnknownTag
	case errors.Is(err, leaf.ErrUnsupported), errors.Is(err, leaf.ErrInvalid):
		return causeUnfit
	case errors.Is(err, leaf.ErrOverflow):
		return causeOverflow
	}
	return causeUnavailable
}
