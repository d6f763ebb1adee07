package frontend

import (
	"context"
	"runtime"

	"github.com/leaf-id/leaf/internal/issuer"
)

// Turns has few large answers made at the same time: event loops and other requests would wait
// behind all of them for a processor. Nil sets no bound.
type Turns chan struct{}

// NewTurns returns turns for half of the processors.
func NewTurns() Turns { return make(Turns, max(runtime.GOMAXPROCS(0)/2, 1)) }

// Do calls f, which does not wait, when few others do so. The error is that of f, or why ctx has
// ended before.
func (t Turns) Do(ctx context.Context, f func() error) error {
	if t == nil {
		return f()
	}
	if !t.begin(ctx) {
		return context.Cause(ctx)
	}
	defer t.end()
	return f()
}

// begin waits for a turn; false: ctx has ended before.
func (t Turns) begin(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t Turns) end() { <-t }

// Few is how many IDs are answered without a turn.
const Few = 1024

// TakeEach takes n IDs that are answered one by one. Only UUIDs are made for it: others come as
// ranges.
func (o *Options) TakeEach(ctx context.Context, scheme, key string, n int) (ids issuer.IDs, err error) {
	if scheme != issuer.UUID || n <= Few {
		return o.IDs.Take(ctx, scheme, key, n)
	}
	err = o.Turns.Do(ctx, func() (err error) {
		ids, err = o.IDs.Take(ctx, scheme, key, n)
		return err
	})
	return ids, err
}
