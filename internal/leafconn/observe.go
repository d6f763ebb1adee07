package leafconn

import (
	"context"
	"time"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
)

// Peek returns the next ID of a tag at the server that is asked first, and takes none.
func (c *Conn) Peek(ctx context.Context, tag string) (int64, error) {
	res, err := repeatable(ctx, c, func(ctx context.Context, srv *server) (*leafv1.PeekTagResponse, error) {
		return srv.admin.PeekTag(ctx, &leafv1.PeekTagRequest{Name: tag})
	})
	return res.GetNext(), err
}

// An Observed says what came of [Conn.Observe].
type Observed struct {
	MaxID       int64
	Dropped     int64
	OthersBelow int64
	OthersFor   time.Duration
}

// Observe tells all servers, one after the other, that IDs up to largest are in use. It
// ends with the first that fails, and may be repeated.
func (c *Conn) Observe(ctx context.Context, tag string, largest int64) (all Observed, err error) {
	for _, s := range c.servers {
		res, err := once(ctx, c, s.host, func(ctx context.Context, srv *server) (*leafv1.ObserveTagResponse, error) {
			return srv.admin.ObserveTag(ctx, &leafv1.ObserveTagRequest{Name: tag, Max: largest})
		})
		if err != nil {
			return Observed{}, err
		}
		all.MaxID = max(all.MaxID, res.GetTag().GetMaxId())
		all.Dropped += res.GetDropped()
		all.OthersBelow = max(all.OthersBelow, res.GetOthersBelow())
		all.OthersFor = max(all.OthersFor, res.GetOthersFor().AsDuration())
	}
	return all, nil
}
