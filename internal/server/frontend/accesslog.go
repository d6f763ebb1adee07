package frontend

import (
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// An AccessLog logs every n-th request of all front ends that share it. Without that setting it
// costs an atomic load. A nil one logs nothing.
type AccessLog struct {
	log   *slog.Logger
	every atomic.Int64 // 0: no request is logged
	count atomic.Int64
}

// NewAccessLog returns a log of every n-th request; n may be 0.
func NewAccessLog(log *slog.Logger, n int64) *AccessLog {
	l := &AccessLog{log: log}
	l.SetEvery(n)
	return l
}

// SetEvery changes n.
func (l *AccessLog) SetEvery(n int64) { l.every.Store(n) }

// On reports whether requests are logged.
func (l *AccessLog) On() bool { return l != nil && l.every.Load() > 0 }

// Due counts a request, and reports whether to log it.
func (l *AccessLog) Due() bool { return l.On() && l.count.Add(1)%max(l.every.Load(), 1) == 0 }

// LeasesPath is the path of claims of leases. The lease, which is a secret, follows it in those of
// renewals and releases.
const LeasesPath = "/v1/workers/leases"

// pathOf returns the path of a request without secrets.
func pathOf(r *http.Request) string {
	if strings.HasPrefix(r.URL.Path, LeasesPath+"/") {
		return LeasesPath + "/{lease}"
	}
	return r.URL.Path
}

// Log logs a request of the named caller. Size is the attribute of the answer's bytes, or empty.
func (l *AccessLog) Log(r *http.Request, name string, status int, began time.Time, size ...any) {
	about := append([]any{"method", r.Method, "path", pathOf(r), "proto", r.Proto, "status", status}, size...)
	l.log.Info("access", append(about, "took", time.Since(began), "from", r.RemoteAddr, "agent", r.UserAgent(), "token", name, "one_of", l.every.Load())...)
}
