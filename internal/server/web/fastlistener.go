package web

import (
	"context"
	"net"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/fastlane"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// A fastListener receives the connections on the port of HTTP before net/http. It answers requests for one
// ID from event loops, with TLS from goroutines, and hands over all other connections. Each of the two protocols has an
// http.Server of its own: one for both would wait for the 24 bytes of an HTTP/2 preface before it
// answers garbage.
type fastListener struct {
	conns *conns.Server
	one   *freshHandover // of connections of HTTP/1
	two   *handover      // of HTTP/2
	http2 *http.Server
}

// needsTLS is what net/http answers to a client that begins without TLS where it must.
const needsTLS = "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n"

func (s *Server) newLane(http2 *http.Server) *fastListener {
	l := &fastListener{one: newFreshHandover(), two: newHandover(), http2: http2}
	o := s.opts.Conns
	o.IdleTimeout, o.RequestTimeout = frontend.IdleTimeout, frontend.RequestTimeout
	o.TLS, o.NeedsTLS = s.opts.TLS, []byte(needsTLS)
	behind := fastlane.Behind{Wants: s.passesLane, HTTP1: l.one.give, HTTP2: l.two.give}
	l.conns = conns.New(s.opts.Context, fastlane.New(s.opts, behind).Serve, &o)
	return l
}

// passesLane reports whether net/http answers all, or all below /v1, for now: it alone logs and
// traces requests, and answers pages of other origins.
func (s *Server) passesLane(v1 bool) bool {
	return s.opts.Traces != nil || s.opts.AccessLog.On() || v1 && s.browser.Shares()
}

// serve serves the port, with http1 behind the lane.
func (l *fastListener) serve(port net.Listener, http1 *http.Server) error {
	go func() { _ = http1.Serve(l.one) }()   // ends when http1 is shut down
	go func() { _ = l.http2.Serve(l.two) }() // likewise
	return l.conns.Serve(port)
}

// shutdown ends the lane, and then http1. Until then http1 takes connections, because only http1
// tells requests with a long wait that the server stops. Other clients learn at once that they
// should reconnect elsewhere. http1 would not answer a request that it reads after its own stop
// began.
func (l *fastListener) shutdown(ctx context.Context, http1 *http.Server) error {
	http1.SetKeepAlivesEnabled(false)
	var ends errgroup.Group
	ends.Go(func() error {
		if err := l.conns.Shutdown(ctx); err != nil {
			return err
		}
		if err := l.one.wait(ctx); err != nil {
			return err
		}
		return http1.Shutdown(ctx)
	})
	ends.Go(func() error { return l.http2.Shutdown(ctx) })
	return ends.Wait()
}

// cut ends what shutdown has not ended, except http1.
func (l *fastListener) cut() {
	l.conns.Close()
	_ = l.http2.Close() // vanished connections need no close
}
