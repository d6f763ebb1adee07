package leafconn

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"strings"
	"time"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/propagation"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/hops"
)

// intercept adds to each call to s what all have in common.
func (c *Conn) intercept(s *server) func(connect.UnaryFunc) connect.UnaryFunc {
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			if c.opts.CallTimeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, c.opts.CallTimeout)
				defer cancel()
			}
			if err := c.addHeaders(ctx, req.Header()); err != nil {
				return nil, err
			}
			begun := time.Now()
			res, err := next(callContext{ctx}, req)
			if _, cut := errors.AsType[ended](err); cut && ctx.Err() == nil {
				err = fmt.Errorf("%w: %w", errCut, err)
			}
			if ofIDs := strings.HasPrefix(req.Spec().Procedure, "/"+leafv1connect.LeafServiceName+"/"); ofIDs && (res != nil || connect.IsWireError(err)) {
				s.learnRoute(res, err)
			}
			if err == nil {
				err = c.checkStore(s, res.Header().Get(hops.Store))
			}
			if c.opts.Observe != nil {
				c.opts.Observe(Call{Server: s.host, Procedure: path.Base(req.Spec().Procedure), Took: time.Since(begun), Err: err, Range: grantedBy(res, err)})
			}
			return res, err
		}
	}
}

// grantedBy returns the range in an answer, or an empty one.
func grantedBy(res connect.AnyResponse, err error) leaf.Range {
	if err != nil {
		return leaf.Range{}
	}
	answer, _ := res.Any().(*leafv1.AdvanceResponse)
	return leaf.Range{Start: answer.GetRange().GetStart(), End: answer.GetRange().GetEnd()}
}

func (c *Conn) addHeaders(ctx context.Context, h http.Header) error {
	if c.opts.Token != nil {
		token, err := c.opts.Token()
		if err != nil {
			return err
		}
		h.Set("Authorization", "Bearer "+token)
	}
	if c.opts.Name != "" {
		h.Set(hops.Via, hops.Format(append(hops.From(ctx), c.opts.Name)))
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	return nil
}

// learnRoute takes up which servers the IDs of s come through. Only the service of IDs tells.
func (s *server) learnRoute(res connect.AnyResponse, err error) {
	var header http.Header
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		header = coded.Meta()
	} else if err == nil {
		header = res.Header()
	}
	route := hops.Parse(header.Get(hops.Route))
	s.route.Store(&route)
}

// Route returns the names of the servers that IDs come through, that of this process first.
func (c *Conn) Route() []string {
	names := []string{c.opts.Name}
	if route := c.servers[c.active.Load()].route.Load(); route != nil {
		names = append(names, *route...)
	}
	return names
}

// checkRoute reports that IDs of s come through this process.
func (c *Conn) checkRoute(s *server) error {
	route := s.route.Load()
	if c.opts.Name == "" || route == nil {
		return nil
	}
	return hops.Check(c.opts.Name, *route)
}
