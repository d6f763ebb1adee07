package frontend

import (
	"context"
	"runtime"

	"github.com/leaf-id/leaf/internal/issuer"
)

// A BatchLimiter bounds how many large answers the server makes at the same time: event loops and
// other requests would wait behind them for a processor. Nil sets no bound.
type BatchLimiter chan struct{}

// NewBatchLimiter returns a limiter that lets large answers use half of the processors.
func NewBatchLimiter() BatchLimiter { return make(BatchLimiter, max(runtime.GOMAXPROCS(0)/2, 1)) }

// Do calls f, which does not wait, when few others do so. The error is that of f, or why ctx has
// ended before.
func (t BatchLimiter) Do(ctx context.Context, f func() error) error {
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
func (t BatchLimiter) begin(ctx context.Context) bool {
	select {
	case t <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t BatchLimiter) end() { <-t }

// Few is how many texts are made without a turn.
const Few = 1024

// MakeTexts makes the texts of ids, many of them in turn. The error is that of [Options.Charge],
// or why ctx has ended before the turn.
func (o *Options) MakeTexts(ctx context.Context, ids issuer.IDs) (texts []string, err error) {
	if ids.Texts.Len() == 0 {
		return nil, nil
	}
	read := func() error {
		if err := o.Charge(ctx, ids.Texts.Len()); err != nil {
			return err
		}
		texts = make([]string, 0, ids.Texts.Len())
		for id := range (issuer.IDs{Texts: ids.Texts}).All() {
			texts = append(texts, id.Text)
		}
		return nil
	}
	if ids.Texts.Len() <= Few {
		err = read()
	} else {
		err = o.Batches.Do(ctx, read)
	}
	return texts, err
}
