package frontend

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
)

const (
	small    = 64  // texts or ranges that a message may have while Options.Conns.Budget is spent
	partCost = 128 // bytes of memory for one of them, from its making until the message is sent
)

var errUnsent = &access.LimitError{What: "answers that clients have not read", RetryAfter: time.Second}

// Charge charges a message of n texts or ranges to the budget, until [EndCharge] or the end
// of the request. The error says why no such message can be made for now.
func (o *Options) Charge(ctx context.Context, n int) error {
	if n <= small || o.Conns.Budget == nil {
		return nil
	}
	if o.Conns.Budget.Spent() {
		return errUnsent
	}
	if c, ok := ctx.Value(chargeKey{}).(*charge); ok {
		c.size.Add(int64(n) * partCost)
		o.Conns.Budget.Add(int64(n) * partCost)
	}
	return nil
}

// EndCharge gives back what [Options.Charge] has charged with ctx.
func EndCharge(ctx context.Context) {
	if c, ok := ctx.Value(chargeKey{}).(*charge); ok {
		c.end()
	}
}

// A charge is a request's charge.
type charge struct {
	unsent *conns.Budget
	size   atomic.Int64
}

type chargeKey struct{}

func (c *charge) end() { c.unsent.Add(-c.size.Swap(0)) }

// WithCharge has [Options.Charge] charge what next makes.
func WithCharge(unsent *conns.Budget, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &charge{unsent: unsent}
		defer c.end()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chargeKey{}, c)))
	})
}
