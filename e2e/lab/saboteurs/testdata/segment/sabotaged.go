package segment

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	sabotage "github.com/leaf-id/leaf"
)

// ahead is how many IDs a broken server takes that nobody waits for.
const ahead = 200

// stocks are what broken servers keep of their grants.
var (
	stocksMu sync.Mutex
	stocks   = map[*strictQueue]Grant{}
)

// sabotagedFetch takes IDs ahead. They are for later calls, or for those that come before the
// answer.
func (q *strictQueue) sabotagedFetch(ctx context.Context, period string, n int64) (g Grant, err error) {
	switch {
	case sabotage.Broken("strict joined"):
		g, err = q.fetch(ctx, period, n+ahead)
		time.Sleep(rand.N(40 * time.Millisecond)) // some answers are slow
		return g, err
	case !sabotage.Broken("strict stock"):
		return q.fetch(ctx, period, n)
	}
	stocksMu.Lock()
	g = stocks[q]
	stocksMu.Unlock()
	if g.Range.Len() < n {
		if g, err = q.fetch(ctx, period, n+ahead); err != nil {
			return g, err
		}
	}
	rest := g
	rest.Range.Start += n
	stocksMu.Lock()
	stocks[q] = rest
	stocksMu.Unlock()
	g.Range = leaf.Range{Start: g.Range.Start, End: g.Range.Start + n}
	return g, nil
}

// joined returns the callers that came while a call was in flight.
func (q *strictQueue) joined(err error) (late []*strictCall) {
	if err != nil || !sabotage.Broken("strict joined") {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := int64(0); len(q.waiting) > 0 && n+q.waiting[0].n <= ahead; q.waiting = q.waiting[1:] {
		n += q.waiting[0].n
		late = append(late, q.waiting[0])
	}
	return late
}
