package fastlane

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// A Lane is the fast lane of a server.
type Lane struct {
	*frontend.Options
	behind   Behind
	requests [2]*telemetry.Requests // of each API
	heads    atomic.Pointer[heads]
	lastID   atomic.Uint64 // of a connection
	targets  frontend.Names[target]
}

// Behind is the net/http behind a lane.
type Behind struct {
	// Wants reports whether it answers all requests below /v1, or all others, for now.
	Wants func(v1 bool) bool

	// HTTP1 and HTTP2 take over connections of the two protocols.
	HTTP1, HTTP2 func(net.Conn)
}

// New returns a lane for opts.
func New(opts *frontend.Options, behind Behind) *Lane {
	l := &Lane{Options: opts, behind: behind, requests: [...]*telemetry.Requests{opts.Requests.Of(frontend.HTTP), opts.Requests.Of(frontend.V1)}}
	l.heads.Store(new(heads))
	return l
}

// Serve makes the session of a connection.
func (l *Lane) Serve(c *conns.Conn) conns.Session {
	if state := c.TLS(); state != nil && state.NegotiatedProtocol == http2.NextProtoTLS {
		c.HandOver(l.behind.HTTP2)
	}
	return l.newSession(c)
}

// A conn is a session's view of its connection.
type conn interface {
	RemoteAddr() net.Addr
	TLS() *tls.ConnectionState
	Later(f func(ctx context.Context, out []byte) []byte)
	HandOver(heir func(net.Conn))
}

func (l *Lane) newSession(c conn) *session {
	s := &session{Lane: l, conn: c}
	number := uint(l.lastID.Add(1))
	s.recorders = [2]*telemetry.Recorder{l.requests[0].Recorder(number), l.requests[1].Recorder(number)}
	return s
}

// heads are the parts before an answer's length, valid for one second.
type heads struct {
	second int64
	text   [2][]byte // of Java Leaf's routes, and of /v1
	batch  []byte    // the rest of the header, after the length, in an answer of /v1 with many IDs
}

// Before the date, of each API.
var beforeDate = [2]string{
	"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: text/plain;charset=UTF-8\r\nDate: ",
	"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\nContent-Type: application/json\r\nDate: ",
}

// dateFormat is http.TimeFormat.
const dateFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

// headsAt returns the heads of answers.
func (l *Lane) headsAt(now time.Time) *heads {
	h := l.heads.Load()
	if second := now.Unix(); h.second != second {
		h = &heads{second: second}
		for i, before := range beforeDate {
			h.text[i] = append(now.UTC().AppendFormat([]byte(before), dateFormat), "\r\nContent-Length: "...)
		}
		h.batch = append(now.UTC().AppendFormat([]byte("\r\nContent-Type: application/json\r\nDate: "), dateFormat), "\r\n\r\n"...)
		l.heads.Store(h)
	}
	return h
}

// A target is the scheme and key in a path.
type target struct {
	scheme, key string
	api         int  // 0: Java Leaf's routes, 1: /v1
	n           int  // IDs, as a batch; 0: one, by itself
	ranges      bool // the batch is written as ranges
}

// count is how many IDs the target is.
func (t target) count() int64 { return int64(max(t.n, 1)) }

// A session is one connection.
type session struct {
	*Lane
	conn      conn
	recorders [2]*telemetry.Recorder
	served    bool // a request
	slow      bool // the next request is not for the fast lane
	skip      int  // bytes of an answered request

	last   []byte // the last request, since most clients repeat it
	want   target // the request's target
	caller *access.Caller
	token  string // that caller has shown

	ranges []leaf.Range // memory for the next batch
}

// MayIdle implements [conns.Session]: the first request must come in time, as net/http wants
// it too.
func (s *session) MayIdle() bool { return s.served }

// HalfClosed implements [conns.Session].
func (s *session) HalfClosed(rest []byte) {
	if !s.passedOver(rest) {
		s.conn.HandOver(s.behind.HTTP1)
	}
}

// passedOver reports whether net/http takes in for no request, not even a bad one: after the
// first one it waits for four bytes.
func (s *session) passedOver(in []byte) bool { return s.served && len(in) < 4 }

// Closed implements [conns.Session].
func (s *session) Closed() {}

// flushAt is how many bytes of answers are sent at once.
const flushAt = 16 << 10

// Serve implements [conns.Session].
func (s *session) Serve(in, out []byte) (taken int, _ []byte) {
	taken, s.skip = s.skip, 0
	now, before := time.Now(), len(out)
	for taken < len(in) && len(out) < before+flushAt {
		size, parsed := s.next(in[taken:])
		if parsed == incomplete {
			break
		}
		if parsed == understood && !s.slow && !s.behind.Wants(s.want.api == 1) {
			var answered bool
			if out, answered = s.answer(out, size, now); answered {
				taken += size
				continue
			}
			if !s.slow { // it is answered later
				break
			}
		}
		if parsed == preface && s.conn.TLS() == nil { // with TLS the handshake decides
			s.conn.HandOver(s.behind.HTTP2)
		} else {
			s.conn.HandOver(s.behind.HTTP1)
		}
		break
	}
	return taken, out
}

// answer answers the last request; false: it is answered later, or is not for the fast lane.
func (s *session) answer(out []byte, size int, now time.Time) (_ []byte, ok bool) {
	recorder := s.recorders[s.want.api]
	arrived := recorder.Now()
	if s.admit() != nil {
		s.slow = true
		return out, false
	}
	answered, err := s.issue(frontend.NoWait, out, now)
	switch {
	case errors.Is(err, frontend.ErrWaits):
		s.later(size, arrived)
		return out, false
	case err != nil:
		s.leave()
		return out, false
	}
	s.served = true
	recorder.Done(arrived, 1)
	return answered, true
}

// issue takes the IDs of the last request and appends the answer, or leaves both alone.
func (s *session) issue(ctx context.Context, out []byte, now time.Time) ([]byte, error) {
	if s.want.n > 0 {
		return s.issueBatch(ctx, out, now)
	}
	id, err := s.IDs.Next(ctx, s.want.scheme, s.want.key)
	if err != nil {
		return out, err
	}
	return s.append(out, id, now), nil
}

// later answers the last request where that may wait.
func (s *session) later(size int, arrived time.Duration) {
	s.served = true // the client has done its part
	s.conn.Later(func(ctx context.Context, out []byte) []byte {
		stockless, err := s.IDs.Stockless(ctx, s.want.scheme, s.want.key)
		if err != nil || stockless && s.want.api != 0 { // the answer may have a period
			s.leave()
			return out
		}
		if out, err = s.issue(ctx, out, time.Now()); err != nil {
			s.leave()
			return out
		}
		s.skip = size
		s.recorders[s.want.api].Done(arrived, 1)
		return out
	})
}

// leave makes net/http write the error; it also counts the request.
func (s *session) leave() {
	s.caller.Refund(s.want.scheme, s.want.key, s.want.count())
	s.slow = true
}

// admit reports why the caller may not take an ID, and counts it.
func (s *session) admit() error {
	if s.Access.Open() {
		return nil
	}
	return s.caller.Take(s.want.scheme, s.want.key, s.want.count())
}

// identify finds out who the caller is; nil: it is not known.
func (s *session) identify(token string) *access.Caller {
	credentials := access.Credentials{Token: token}
	if tls := s.conn.TLS(); tls != nil && len(tls.VerifiedChains) > 0 {
		credentials.Certificate = tls.VerifiedChains[0][0]
	}
	if from, err := netip.ParseAddrPort(s.conn.RemoteAddr().String()); err == nil {
		credentials.Addr = from.Addr().Unmap()
	}
	return s.Access.Lookup(credentials)
}

// append appends the answer to a request.
func (s *session) append(out []byte, id issuer.ID, now time.Time) []byte {
	var buf [64]byte
	body := id.Append(buf[:0])
	out = append(out, s.headsAt(now).text[s.want.api]...)
	if s.want.api == 0 {
		out = strconv.AppendInt(out, int64(len(body)), 10)
		return append(append(out, "\r\n\r\n"...), body...)
	}
	out = strconv.AppendInt(out, int64(len(body)+len(`{"ids":[""]}`)+1), 10)
	out = append(append(out, "\r\n\r\n{\"ids\":[\""...), body...)
	return append(out, "\"]}\n"...)
}
