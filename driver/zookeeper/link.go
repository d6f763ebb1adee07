package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	dialTimeout = 2 * time.Second
	maxFrame    = 16 << 20 // bytes; a server's own limit is 1 MiB unless raised
)

var errLost = errors.New("the connection was lost")

// A link is one TCP connection to one server, with a session of its own. It is never
// re-established: nothing here lives as long as a session, and a request that waited
// for the next connection would be sent long after its caller had given it up.
type link struct {
	addr  string
	zk    *zk.Conn
	ready chan struct{} // closed once there is a session
	gone  chan struct{} // closed when the connection is lost or given up

	readyOnce, goneOnce sync.Once
}

// dial connects to addr. There is no session before ready is closed. work is done
// when the link has ended.
func dial(ctx context.Context, addr string, session time.Duration, logger *slog.Logger, work *sync.WaitGroup) (*link, error) {
	tcp, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	l := &link{addr: addr, ready: make(chan struct{}), gone: make(chan struct{})}
	once := make(chan net.Conn, 1)
	once <- &framed{Conn: tcp}
	dialer := func(string, string, time.Duration) (net.Conn, error) {
		select {
		case c := <-once:
			return c, nil
		default:
			return nil, errLost
		}
	}
	conn, events, err := zk.Connect([]string{addr}, session, zk.WithDialer(dialer), zk.WithHostProvider(&host{addr: addr}),
		zk.WithMaxBufferSize(maxFrame), zk.WithLogger(libraryLog{logger, addr}), zk.WithEventCallback(l.note))
	if err != nil {
		_ = tcp.Close() // the first error is the one to tell
		return nil, err
	}
	l.zk = conn
	work.Go(func() { l.bury(tcp, events) })
	return l, nil
}

// note follows the state of the connection. The library waits for it.
func (l *link) note(e zk.Event) {
	if e.Type != zk.EventSession {
		return
	}
	switch e.State {
	case zk.StateHasSession:
		l.readyOnce.Do(func() { close(l.ready) })
	case zk.StateDisconnected, zk.StateExpired, zk.StateAuthFailed:
		l.giveUp()
	}
}

func (l *link) giveUp() { l.goneOnce.Do(func() { close(l.gone) }) }

func (l *link) lost() bool {
	select {
	case <-l.gone:
		return true
	default:
		return false
	}
}

// explain says where an error comes from, and what to do about it.
func (l *link) explain(err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("zookeeper at %s: an ACL keeps out who does not log in, as Leaf does not: open the nodes "+
			"(setAcl -R PATH world:anyone:cdrwa), or name another chroot in the URL: %w", l.addr, err)
	case err != nil && l.lost():
		return fmt.Errorf("zookeeper at %s: %w", l.addr, err)
	}
	return err
}

// bury ends a link that is gone. The library's Close waits for the server, at most a
// few seconds, and leaves the connection to the server.
func (l *link) bury(tcp net.Conn, events <-chan zk.Event) {
	<-l.gone
	l.zk.Close()
	_ = tcp.Close()    // it may be closed already
	for range events { // until the library has come to rest
	}
}

// await returns once there is a session.
func (l *link) await(ctx context.Context, limit time.Duration) error {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-l.ready:
		return nil
	case <-l.gone:
		return fmt.Errorf("%s gave no session: is it a ZooKeeper, and part of a quorum?", l.addr)
	case <-timer.C:
		return fmt.Errorf("%s gave no session within %v", l.addr, limit)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A host is the one server of a link. It has the library wait before it dials again,
// which a link that is gone does not let it do.
type host struct {
	addr  string
	asked bool
}

func (h *host) Init([]string) error { return nil }
func (h *host) Len() int            { return 1 }
func (h *host) Connected()          {}
func (h *host) Next() (addr string, retry bool) {
	retry, h.asked = h.asked, true
	return h.addr, retry
}

// libraryLog takes what the client library has to say; errors are returned as well.
type libraryLog struct {
	logger *slog.Logger
	addr   string
}

func (l libraryLog) Printf(format string, args ...any) {
	l.logger.Debug("zookeeper client", "server", l.addr, "msg", fmt.Sprintf(format, args...))
}

// framed is a connection that refuses packets above maxFrame before the library
// makes room for them: what answers may be no ZooKeeper at all.
type framed struct {
	net.Conn
	header [4]byte
	have   int    // bytes of header that are there
	left   uint32 // bytes to come of the packet
}

func (f *framed) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if f.left > 0 {
			skip := min(len(rest), int(f.left))
			rest, f.left = rest[skip:], f.left-uint32(skip)
			continue
		}
		used := copy(f.header[f.have:], rest)
		rest, f.have = rest[used:], f.have+used
		if f.have == len(f.header) {
			f.have, f.left = 0, binary.BigEndian.Uint32(f.header[:])
		}
		if f.left > maxFrame {
			return 0, fmt.Errorf("a packet of %d bytes: this is no ZooKeeper", f.left)
		}
	}
	return n, err
}
