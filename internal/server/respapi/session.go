package respapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/netip"

	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/segment"
)

// Sizes of the buffers of a connection, in bytes. Thousands of connections are idle: they
// keep little.
const (
	smallInput = 1 << 10
	bulkInput  = 16 << 10 // for pipelines; a single command may need more
	flushAt    = 16 << 10
	keepOutput = 4 << 10 // what an idle connection keeps beyond flushAt is dropped
)

// maxTags is how many names of tags a connection remembers.
const maxTags = 256

// A session is one connection.
type session struct {
	*API
	reply
	ctx  context.Context
	conn *conns.Conn

	in         []byte
	start, end int // what of in has come and is not carried out yet
	args       [][]byte
	closing    bool // nothing is carried out any more
	commands   int64
	recorder   *telemetry.Recorder

	id         int64
	name       string
	lib        [2]string // name and version, as the client says
	caller     *access.Caller
	credential access.Credentials

	tags map[string]string // names that were asked for, so that none is made twice
}

func newSession(ctx context.Context, a *API, c *conns.Conn) *session {
	s := &session{
		API: a, ctx: ctx, conn: c,
		in:   make([]byte, smallInput),
		id:   a.lastID.Add(1),
		tags: make(map[string]string),
	}
	s.recorder = a.Requests.RESP.Recorder(uint(s.id))
	s.credential = credentialsOf(c.Conn)
	s.reset()
	return s
}

// credentialsOf returns what is known of a client before it sends anything.
func credentialsOf(c net.Conn) access.Credentials {
	var cred access.Credentials
	if from, err := netip.ParseAddrPort(c.RemoteAddr().String()); err == nil {
		cred.Addr = from.Addr().Unmap()
	}
	if tls, ok := c.(*tls.Conn); ok && len(tls.ConnectionState().VerifiedChains) > 0 {
		cred.Certificate = tls.ConnectionState().VerifiedChains[0][0]
	}
	return cred
}

// run serves the connection to its end.
func (s *session) run() {
	begun := false
	for {
		arrived, before := s.recorder.Now(), s.commands
		progress := s.execute()
		ok := s.flush()
		s.recorder.Done(arrived, int(s.commands-before)) // all that was read at once took the same time
		if !ok || s.closing {
			return
		}
		s.makeRoom()
		switch {
		case s.caller != nil && s.end == 0:
			s.conn.Idle()
			begun = false
		case s.caller != nil && progress, !begun: // a caller that is not known has one request's time to say who it is
			s.conn.Begun()
			begun = true
		}
		n, err := s.conn.Read(s.in[s.end:])
		s.end += n
		if err != nil && n == 0 {
			return
		}
	}
}

// makeRoom moves what is left of the input to the front, with room for more behind it.
func (s *session) makeRoom() {
	full := s.end == len(s.in)
	s.end = copy(s.in, s.in[s.start:s.end])
	s.start = 0
	size := len(s.in)
	switch {
	case s.end == size, full && size < bulkInput:
		size = min(2*size, maxSize)
	case s.end == 0 && size > bulkInput:
		size = bulkInput
	}
	if size != len(s.in) {
		s.in = append(make([]byte, 0, size), s.in[:s.end]...)[:size]
	}
	if cap(s.buf) > flushAt+keepOutput {
		s.buf = nil
	}
}

// execute carries out the commands that are there as a whole, and reports whether there
// was one.
func (s *session) execute() (progress bool) {
	for s.start < s.end && !s.closing {
		frame := s.in[s.start:s.end]
		args, size, err := parse(frame, s.args[:0], s.limits())
		if err != nil {
			s.fail("ERR Protocol error: " + err.Error())
			s.closing = true
			return progress
		}
		if size == 0 {
			return progress
		}
		progress = true
		s.start += size
		s.args = args[:0]
		if len(args) > 0 {
			s.commands++
			s.dispatch(args, frame[:size])
		}
		if len(s.buf) >= flushAt {
			s.flush()
		}
	}
	return progress
}

func (s *session) limits() limits {
	if s.caller == nil {
		return unknownLimits
	}
	return knownLimits
}

// repeats counts how often the frame that was just read follows again, at most limit
// times, and passes over these.
func (s *session) repeats(frame []byte, limit int) (n int) {
	for n < limit && bytes.HasPrefix(s.in[s.start:s.end], frame) {
		s.start += len(frame)
		n++
	}
	return n
}

// flush sends the replies that are there; false: the client has gone.
func (s *session) flush() bool {
	if len(s.buf) == 0 {
		return true
	}
	_, err := s.conn.Write(s.buf)
	s.buf = s.buf[:0]
	if err != nil {
		s.closing = true
	}
	return err == nil
}

// tag returns the text of a name; the same bytes give the same string again.
func (s *session) tag(name []byte) string {
	if tag, ok := s.tags[string(name)]; ok {
		return tag
	}
	tag := string(name)
	if len(name) > segment.MaxTagLength { // rare: the limit counts characters
		return tag
	}
	if len(s.tags) == maxTags {
		clear(s.tags)
	}
	s.tags[tag] = tag
	return tag
}

// reset makes the connection what it was when it began.
func (s *session) reset() {
	s.resp3, s.name = false, ""
	s.credential.Token = ""
	s.caller, _ = s.Access.Caller(s.credential) // nil where callers have to say who they are
}
