package leafconn

import (
	"context"
	"sync"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/segment"
)

var (
	stockMu sync.Mutex
	stock   segment.Grant
)

// sabotagedStrict takes IDs ahead, as a relay does for usual tags. There is one strict tag.
func (s Store) sabotagedStrict(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	stockMu.Lock()
	defer stockMu.Unlock()
	if stock.Range.Len() < n {
		g, err := s.advance(ctx, &leafv1.AdvanceRequest{Tag: tag, Count: n + 200, Strict: true})
		if err != nil {
			return g, err
		}
		stock = g
	}
	g := stock
	stock.Range.Start += n
	g.Range = leaf.Range{Start: g.Range.Start, End: g.Range.Start + n}
	return g, nil
}
