package leafconn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

// Take returns n IDs, of one call. It wraps [leaf.ErrExhausted] where no server answers.
func (c *Conn) Take(ctx context.Context, scheme, key string, n int) ([]leaf.Range, error) {
	if n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d IDs at once", leaf.ErrInvalid, n)
	}
	res, err := repeatable(ctx, c, func(ctx context.Context, srv *server) (*leafv1.TakeResponse, error) {
		res, err := srv.ids.Take(ctx, &leafv1.TakeRequest{Scheme: scheme, Key: key, Count: int32(n), TellStore: true})
		if err == nil {
			err = c.checkStore(res.GetStore())
		}
		return res, err
	})
	if err == nil && len(res.GetTexts()) > 0 {
		err = fmt.Errorf("%w: the IDs of %s are text", leaf.ErrInvalid, scheme)
	}
	if err != nil {
		return nil, noIDs(err)
	}
	ranges := make([]leaf.Range, len(res.GetRanges()))
	for i, r := range res.GetRanges() {
		ranges[i] = leaf.Range{Start: r.GetStart(), End: r.GetEnd()}
	}
	return ranges, nil
}

// noIDs returns err as the error of a call for IDs: without a server the client has no IDs.
func noIDs(err error) error {
	if errors.Is(err, errAway) {
		return fmt.Errorf("%w: %w", leaf.ErrExhausted, err)
	}
	return err
}
