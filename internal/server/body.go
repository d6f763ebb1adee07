package server

import (
	"net/http"
	"time"
)

// bodyTimeout is how long a client may take to send a request's body: longer than any
// network needs for the few bytes there are.
const bodyTimeout = 10 * time.Second

// boundBody ends connections whose request body has not come within limit. What the
// handler does once it has the body is not bounded: net/http lifts the deadline when
// the body ends.
func boundBody(next http.Handler, limit time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body != nil && r.Body != http.NoBody {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(limit)) // only a test has a writer without deadlines
		}
		next.ServeHTTP(w, r)
	})
}
