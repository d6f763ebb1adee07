package telemetry

import (
	"context"
	"errors"
	"net"
	"time"

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

// StoreCalls counts the allocations of a store.
type StoreCalls struct{ requests *Requests }

// NewStoreCalls returns counters of calls to one store.
func NewStoreCalls() *StoreCalls {
	return &StoreCalls{NewRequests([]string{causeTimeout, causeUnknownTag, causeUnfit, causeOverflow, causeUnavailable})}
}

// Observe counts a call that took so long and ended with err.
func (c *StoreCalls) Observe(took time.Duration, err error) {
	c.requests.Recorder(0).took(took, 1)
	if err != nil {
		c.requests.Failed(storeCause(err))
	}
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
