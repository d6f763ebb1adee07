package access

import (
	"log/slog"
	"net/netip"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

// attempts slows down and logs clients with invalid credentials. Guessing a token is out of reach,
// so this keeps the log readable and shows an operator who has an old token.
type attempts struct {
	log       *slog.Logger
	lines     *rate.Limiter
	unlogged  atomic.Int64
	addresses *buckets
}

// How many wrong tokens an address may send, and how many lines the log gets.
var (
	maxAttempts = Limit{Rate: 1, Burst: 20}
	logEvery    = time.Second
	logBurst    = 20
)

func newAttempts(log *slog.Logger) attempts {
	return attempts{log: log, lines: rate.NewLimiter(rate.Every(logEvery), logBurst), addresses: new(buckets)}
}

// failed returns the error for an invalid token from addr.
func (a *attempts) failed(addr netip.Addr, why string) error {
	a.note(addr, why)
	now := time.Now()
	if err := a.addresses.get(hash(network(addr)), maxAttempts, now, nil).take(now, 1); err != nil {
		return &LimitError{What: "too many wrong tokens from this address", RetryAfter: err.RetryAfter}
	}
	return ErrUnauthenticated
}

// missing returns the error for a request without a token. It is no attempt: clients of the
// Redis protocol connect before they say who they are.
func (a *attempts) missing(addr netip.Addr, why string) error {
	a.log.Debug("no credentials", "address", addr, "reason", why)
	return ErrUnauthenticated
}

func (a *attempts) note(addr netip.Addr, why string) {
	if !a.lines.Allow() {
		a.unlogged.Add(1)
		return
	}
	args := []any{"address", addr, "reason", why}
	if n := a.unlogged.Swap(0); n > 0 {
		args = append(args, "not_logged", n)
	}
	a.log.Warn("authentication failed", args...)
}
