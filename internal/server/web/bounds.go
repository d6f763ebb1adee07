package web

import (
	"context"
	"log/slog"
	"net/http"
	"runtime"
	"time"

	"golang.org/x/time/rate"
)

// boundBody ends connections whose request body has not come within limit. It does not bound the
// handler after the body: net/http lifts the deadline when the body ends.
//
// A body in chunks may have had a Content-Length as well, which net/http drops and a proxy in front
// may have believed. The bytes after such a body could then be a request that another client of the
// proxy did not send, so the server closes the connection.
func boundBody(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // only a test has a writer without deadlines
		}
		if len(r.TransferEncoding) > 0 {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

// yield serves with next, and gives up the processor after each request. A client may send requests
// without an end and read no answer: the goroutine of its connection would run for 10 ms at a time,
// and behind thousands of such goroutines the event loops would wait for seconds.
func yield(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r)
		runtime.Gosched()
	})
}

// A rateLimitedHandler handler drops what exceeds a line a second, after the first few. Each connection of
// a client can cause one, by a TLS handshake that fails: the log must not fill a disk.
type rateLimitedHandler struct {
	slog.Handler
	lines *rate.Limiter
}

const sparseBurst = 20

func newSparse(h slog.Handler) slog.Handler {
	return rateLimitedHandler{h, rate.NewLimiter(rate.Every(time.Second), sparseBurst)}
}

// Handle implements [slog.Handler].
func (s rateLimitedHandler) Handle(ctx context.Context, r slog.Record) error {
	if !s.lines.Allow() {
		return nil
	}
	return s.Handler.Handle(ctx, r)
}
