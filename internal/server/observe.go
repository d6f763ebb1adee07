package server

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// An observer logs every n-th request over HTTP. Without that setting it costs an atomic load.
type observer struct {
	next  http.Handler
	log   *slog.Logger
	name  func(*http.Request) string // the caller's
	every atomic.Int64               // 0: no request is logged
	count atomic.Int64
}

// ServeHTTP implements [http.Handler].
func (o *observer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	every, is := o.due()
	if !is {
		o.next.ServeHTTP(w, r)
		return
	}
	rec := &recorder{ResponseWriter: w}
	start := time.Now()
	o.next.ServeHTTP(rec, r)
	o.log.Info("access", "method", r.Method, "path", r.URL.Path, "proto", r.Proto, "status", rec.code(), "bytes", rec.bytes,
		"took", time.Since(start), "from", r.RemoteAddr, "agent", r.UserAgent(), "token", o.name(r), "one_of", every)
}

// due reports whether to log the present request.
func (o *observer) due() (every int64, is bool) {
	every = o.every.Load()
	return every, every > 0 && o.count.Add(1)%every == 0
}

// logCall logs a call of gRPC that net/http has not served.
func (o *observer) logCall(procedure, from string, header func() http.Header, began time.Time) {
	if every, is := o.due(); is {
		r := &http.Request{Header: header(), RemoteAddr: from}
		o.log.Info("access", "method", http.MethodPost, "path", procedure, "proto", "HTTP/2.0", "status", http.StatusOK,
			"took", time.Since(began), "from", from, "agent", strings.Join(r.Header["User-Agent"], ", "), "token", o.name(r), "one_of", every)
	}
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
