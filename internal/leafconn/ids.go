package leafconn

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

// Take returns n IDs, of one call. It wraps [leaf.ErrExhausted] where no server answers.
func (c *Conn) Take(ctx context.Context, scheme, key string, n int) ([]leaf.Range, error) {
	res, err := c.take(ctx, c.hedge, &leafv1.TakeRequest{Scheme: scheme, Key: key}, n)
	if err == nil && len(res.GetTexts()) > 0 {
		err = fmt.Errorf("%w: the IDs of %s are text", leaf.ErrInvalid, scheme)
	}
	if err != nil {
		return nil, err
	}
	return rangesOf(res, n)
}

// An Issued is the answer to [Conn.Issue].
type Issued struct {
	Ranges []leaf.Range
	Texts  []string
	Period string
}

// Issue returns the IDs of one call, as the servers answer. It asks one server at a time.
func (c *Conn) Issue(ctx context.Context, req *leafv1.TakeRequest, n int) (Issued, error) {
	res, err := c.take(ctx, never, req, n)
	if err == nil {
		err = CheckTaken(req, res)
	}
	if err != nil {
		return Issued{}, err
	}
	ranges, err := rangesOf(res, n)
	if err != nil {
		return Issued{}, err
	}
	return Issued{ranges, res.GetTexts(), res.GetPeriod()}, nil
}

// CheckTaken reports that a server of an older release has ignored a part of a request.
func CheckTaken(req *leafv1.TakeRequest, res *leafv1.TakeResponse) error {
	switch {
	case req.GetPeriod() != "" && res.GetPeriod() != req.GetPeriod():
		return fmt.Errorf("%w: the server knows no periods: upgrade it", leaf.ErrUnsupported)
	case req.GetForm() && len(res.GetTexts()) == 0:
		return fmt.Errorf("%w: the server knows no forms: upgrade it", leaf.ErrUnsupported)
	}
	return nil
}

func (c *Conn) take(ctx context.Context, hedging func() <-chan time.Time, req *leafv1.TakeRequest, n int) (*leafv1.TakeResponse, error) {
	if n < 1 || n > math.MaxInt32 {
		return nil, fmt.Errorf("%w: %d IDs at once", leaf.ErrInvalid, n)
	}
	req.Count, req.TellStore = int32(n), true
	res, err := inTurn(ctx, c, hedging, func(ctx context.Context, srv *server) (*leafv1.TakeResponse, error) {
		res, err := srv.ids.Take(ctx, req)
		if err == nil {
			err = c.checkStore(srv, res.GetStore())
		}
		return res, err
	})
	return res, noIDs(err)
}

// rangesOf returns the ranges of an answer, which has to have n IDs.
func rangesOf(res *leafv1.TakeResponse, n int) ([]leaf.Range, error) {
	ranges := make([]leaf.Range, len(res.GetRanges()))
	left := int64(n - len(res.GetTexts()))
	for i, r := range res.GetRanges() {
		ranges[i] = leaf.Range{Start: r.GetStart(), End: r.GetEnd()}
		if ranges[i].Empty() {
			left = -1
		}
		left -= ranges[i].Len()
	}
	if left != 0 {
		return nil, fmt.Errorf("the answer to a call for %d IDs has others: %d texts and the ranges %v", n, len(res.GetTexts()), ranges)
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
