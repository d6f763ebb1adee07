package respapi

import (
	"bytes"
	"context"
	"net/netip"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/segment"
)

// flushAt is how many bytes of replies are sent at once.
const flushAt = 16 << 10

// keepArgs is how many arguments a connection keeps room for.
const keepArgs = 16

// A session is one connection.
type session struct {
	*API
	reply
	conn *conns.Conn

	in       []byte
	at       int // where in in the next command begins
	flush    int // size of buf at which it is sent
	args     [][]byte
	halted   bool // no further command is carried out for now, or ever
	commands int64
	run      run
	recorder *telemetry.Recorder
	arrived  time.Duration // when the input came, by the recorder

	id         int64
	name       string
	lib        [2]string // name and version, as the client says
	caller     *access.Caller
	credential access.Credentials

	rest issuer.IDs // of an incomplete array

	lastTag string       // most clients repeat it
	ranges  []leaf.Range // of a run
}

func newSession(a *API, c *conns.Conn) *session {
	s := &session{API: a, conn: c, id: a.lastID.Add(1)}
	s.recorder = a.requests.Recorder(uint(s.id))
	s.credential = credentialsOf(c)
	s.reset()
	return s
}

// credentialsOf returns a client's credentials before it sends anything.
func credentialsOf(c *conns.Conn) access.Credentials {
	from, _ := netip.ParseAddrPort(c.RemoteAddr().String()) // zero: the address of no machine
	cred := access.Credentials{Addr: from.Addr().Unmap()}
	if tls := c.TLS(); tls != nil && len(tls.VerifiedChains) > 0 {
		cred.Certificate = tls.VerifiedChains[0][0]
	}
	return cred
}

// Serve implements [conns.Session].
func (s *session) Serve(in, out []byte) (taken int, _ []byte) {
	s.in, s.at, s.buf, s.halted = in, 0, out, false
	before := s.commands
	s.arrived = s.recorder.Now()
	s.flush = len(out) + flushAt
	s.appendRest()
	for s.at < len(in) && !s.halted && len(s.buf) < s.flush {
		if !s.execute(in[s.at:]) {
			break
		}
	}
	s.recorder.Done(s.arrived, int(s.commands-before)) // all commands of one read took the same time
	out, s.buf, s.in = s.buf, nil, nil
	return s.at, out
}

// MayIdle implements [conns.Session]: an unknown caller has one request's time to authenticate.
func (s *session) MayIdle() bool { return s.caller != nil }

// HalfClosed implements [conns.Session]: an incomplete command has no answer.
func (s *session) HalfClosed([]byte) {}

// Closed implements [conns.Session].
func (s *session) Closed() {
	s.open.Add(-1)
	s.done.Add(s.commands)
}

// execute carries out the first command of in; false: it is not there as a whole.
func (s *session) execute(in []byte) bool {
	args, size, err := parse(in, s.args[:0], s.limits())
	if err != nil {
		s.fail("ERR Protocol error: " + err.Error())
		s.end()
		return false
	}
	if size == 0 {
		return false
	}
	s.at += size
	if s.args = args[:0]; cap(args) > keepArgs {
		s.args = nil
	}
	if len(args) > 0 {
		s.commands++
		s.dispatch(args, in[:size])
	}
	return true
}

// end closes the connection after the replies so far.
func (s *session) end() {
	s.halted = true
	s.conn.End()
}

// later has f answer where it may wait. The input is gone by then.
func (s *session) later(f func(ctx context.Context)) {
	s.halted = true
	s.commands-- // it is counted when it is answered
	s.conn.Later(func(ctx context.Context, out []byte) []byte {
		s.buf, s.flush = out, len(out)+flushAt
		f(ctx)
		s.commands++
		s.recorder.Done(s.arrived, 1)
		out, s.buf = s.buf, nil
		return out
	})
}

func (s *session) limits() limits {
	if s.caller == nil {
		return unknownLimits
	}
	return knownLimits
}

// repeats counts the repetitions of the last frame, at most limit.
func (s *session) repeats(frame []byte, limit int) (n int) {
	rest := s.in[s.at:]
	size := min(limit, len(rest)/len(frame)) * len(frame)
	if bytes.Equal(rest[:size], s.in[s.at-len(frame):][:size]) { // all repeat the one before: one look at them all
		return size / len(frame)
	}
	for ; bytes.HasPrefix(rest, frame); n++ {
		rest = rest[len(frame):]
	}
	return n
}

// tag returns the text of a name; the same bytes give the same string again.
func (s *session) tag(name []byte) string {
	if s.lastTag == string(name) {
		return s.lastTag
	}
	tag, ok := s.names.Get(name)
	if !ok {
		if tag = string(name); len(name) > segment.MaxTagLength { // rare: the limit counts characters
			return tag
		}
		s.names.Put(tag, tag)
	}
	s.lastTag = tag
	return tag
}

// reset returns the connection to its first state.
func (s *session) reset() {
	s.resp3, s.name = false, ""
	s.credential.Token = ""
	s.caller, _ = s.Access.Caller(s.credential) // nil where callers have to say who they are
}
