package web

import (
	"net/http"
	"time"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

// An observer logs some requests over HTTP.
type observer struct {
	next   http.Handler
	access *frontend.AccessLog
	name   func(*http.Request) string // the caller's
}

// ServeHTTP implements [http.Handler].
func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !o.access.Due() {
		o.next.ServeHTTP(w, r)
		return
	}
	rec := &recorder{ResponseWriter: w}
	start := time.Now()
	o.next.ServeHTTP(rec, r)
	o.access.Log(r, o.name(r), rec.code(), start, "bytes", rec.bytes)
}

// A recorder records the answer.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 || r.status < http.StatusOK {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseWriter.Write(p)
	r.bytes += int64(n)
	return n, err
}

// Flush implements [http.Flusher], for streams.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// Unwrap is for [http.ResponseController].
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// code is the status; it is not written where the handler says nothing of it.
func (r *recorder) code() int {
	if r.status == 0 {
		return http.StatusOK
	}
	return r.status
}
