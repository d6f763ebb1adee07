package leafconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/segment"
)

// Peek returns the next ID of a tag at the first server, and takes no ID.
func (c *Conn) Peek(ctx context.Context, tag string) (int64, error) {
	res, err := repeatable(ctx, c, func(ctx context.Context, srv *server) (*leafv1.PeekTagResponse, error) {
		return srv.admin.PeekTag(ctx, &leafv1.PeekTagRequest{Name: tag})
	})
	if err != nil {
		return 0, err
	}
	return PeekedNext(res)
}

// PeekedNext returns the ID in an answer, which has none for a tag with a mask.
func PeekedNext(res *leafv1.PeekTagResponse) (int64, error) {
	if tag := Tag(res.GetTag()); tag.Options.Masked() {
		return 0, fmt.Errorf("peek at tag %q: %w: its numbers are hidden", tag.Name, leaf.ErrInvalid)
	}
	return res.GetNext(), nil
}

// An Observed is the result of [Conn.Observe].
type Observed struct {
	Tag         segment.Tag // after the call; zero: no server answered
	Dropped     int64
	OthersBelow int64
	OthersFor   time.Duration
}

// Observe tells all servers in turn that IDs up to largest are in use. An absent server does not
// hold up the others. Repeating the call is harmless.
func (c *Conn) Observe(ctx context.Context, tag string, largest int64) (all Observed, err error) {
	var away failures.List
	for i, s := range c.servers {
		res, err := once(ctx, c, s.host, func(ctx context.Context, srv *server) (*leafv1.ObserveTagResponse, error) {
			ctx, end := share(ctx, len(c.servers)-i)
			defer end()
			return srv.admin.ObserveTag(ctx, &leafv1.ObserveTagRequest{Name: tag, Max: largest})
		})
		if err != nil {
			away = append(away, err)
			if !errors.Is(err, errAway) { // the others would say the same
				break
			}
			continue
		}
		if now := Tag(res.GetTag()); now.MaxID > all.Tag.MaxID {
			all.Tag = now
		}
		all.Dropped += res.GetDropped()
		all.OthersBelow = max(all.OthersBelow, res.GetOthersBelow())
		all.OthersFor = max(all.OthersFor, res.GetOthersFor().AsDuration())
	}
	return all, away.Err()
}

// share returns ctx with an n-th of its remaining time.
func share(ctx context.Context, n int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(n))
}

// ObserveTag tells the servers that IDs of a tag up to largest are in use. It returns the tag after
// the change, and the ID below which other processes may still issue from their stock.
func (s Store) ObserveTag(ctx context.Context, tag string, largest int64) (now segment.Tag, othersBelow int64, err error) {
	if err := segment.CheckKnown(tag); err != nil {
		return segment.Tag{}, 0, err
	}
	all, err := s.Observe(ctx, tag, largest)
	return all.Tag, all.OthersBelow, err
}

// RaiseTag raises the counter of a tag by n, in the store at the end of the chain.
func (s Store) RaiseTag(ctx context.Context, tag string, n int64) (segment.Tag, error) {
	if err := segment.CheckKnown(tag); err != nil {
		return segment.Tag{}, err
	}
	res, err := once(ctx, s.Conn, "", func(ctx context.Context, srv *server) (*leafv1.AlterTagResponse, error) {
		return srv.admin.AlterTag(ctx, &leafv1.AlterTagRequest{Name: tag, RaiseBy: &n})
	})
	if err != nil {
		return segment.Tag{}, err
	}
	return Tag(res.GetTag()), nil
}
