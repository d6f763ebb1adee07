package zookeeper

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	dialTimeout = 2 * time.Second
	maxFrame    = 16 << 20 // bytes; a server's own limit is 1 MiB unless raised
)

var (
	errLost      = errors.New("the connection was lost")
	errNoSession = errors.New("it gave no session: is it a ZooKeeper, and part of a quorum?")
)

// A session lives as long as the first connection on which a server granted it. It is
// never resumed: nothing here depends on it, and a request that waited for the next
// connection would be sent long after its caller had given it up.
type session struct {
	client *client
	zk     *zk.Conn
	shared bool // the caller's: neither given up nor closed
	lost   atomic.Bool

	mu      sync.Mutex
	granted bool
	tries   int
	tcp     net.Conn
	failed  []string // why each server gave no session, in the latest round over all of them
}

// newSession begins a session. It does not wait for it.
func newSession(c *client) (*session, error) {
	s := &session{client: c}
	s.mu.Lock() // events wait for zk
	defer s.mu.Unlock()
	conn, events, err := zk.Connect(c.servers, c.timeout, zk.WithDialer(s.dial), zk.WithHostProvider(hosts{s}),
		zk.WithMaxBufferSize(maxFrame), zk.WithLogger(s), zk.WithEventCallback(s.event))
	if err != nil {
		return nil, err
	}
	s.zk = conn
	c.work.Go(func() {
		for range events { // until the library has shut down
		}
	})
	return s, nil
}

// event follows the state of the session. The library waits for it.
func (s *session) event(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case e.State == zk.StateHasSession:
		s.granted = true
		s.client.logger.Info("connected to zookeeper", "server", e.Server)
	case e.State != zk.StateDisconnected && e.State != zk.StateExpired:
	case s.granted:
		s.lost.Store(true) // before the library fails what waits
		go s.giveUp()
	case s.tcp != nil:
		s.failed = append(s.failed, e.Server+": "+errNoSession.Error())
	}
}

// giveUp ends the session. The library's Close waits for the server, at most a second,
// and leaves the connection to the server.
func (s *session) giveUp() {
	s.lost.Store(true)
	s.zk.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tcp != nil {
		_ = s.tcp.Close() // it may be closed already
	}
}

func (s *session) failures() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.failed, "; ")
}

// dial connects to a server.
func (s *session) dial(_, addr string, _ time.Duration) (net.Conn, error) {
	s.mu.Lock()
	granted := s.granted
	s.mu.Unlock()
	if granted || s.lost.Load() {
		return nil, errLost
	}
	tcp, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(s.client.ctx, "tcp", addr)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.tcp, s.failed = nil, append(s.failed, err.Error())
		return nil, err
	}
	s.tcp = &conn{Conn: tcp, silence: s.client.timeout}
	return s.tcp, nil
}

// Printf takes the log of the client library, which returns its errors as well.
func (s *session) Printf(format string, args ...any) {
	s.client.logger.Debug("zookeeper client", "msg", fmt.Sprintf(format, args...))
}

// hosts has the library try the servers in turn. After each round it fails the requests
// that wait, and pauses.
type hosts struct{ *session }

func (h hosts) Init([]string) error { return nil }
func (h hosts) Len() int            { return len(h.client.servers) }
func (h hosts) Connected()          {}
func (h hosts) Next() (addr string, retry bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := len(h.client.servers)
	retry = h.granted || h.tries > 0 && h.tries%n == 0
	h.tries++
	h.failed = h.failed[max(0, len(h.failed)-n):]
	return h.client.servers[int(h.client.dials.Add(1))%n], retry
}

// A conn refuses answers that cannot be ZooKeeper's, and gives up a silent server.
type conn struct {
	net.Conn
	silence time.Duration
	head    []byte // of the first packet, before the library makes room for it
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if missing := 4 - len(c.head); missing > 0 {
		c.head = append(c.head, p[:min(n, missing)]...)
		if len(c.head) == 4 && binary.BigEndian.Uint32(c.head) > maxFrame {
			return 0, errNoSession
		}
	}
	return n, err
}

// SetReadDeadline sets a deadline at most silence ahead: the library waits for a session
// much longer, or for ever.
func (c *conn) SetReadDeadline(t time.Time) error {
	latest := time.Now().Add(c.silence)
	if t.IsZero() || t.After(latest) {
		t = latest
	}
	return c.Conn.SetReadDeadline(t)
}
