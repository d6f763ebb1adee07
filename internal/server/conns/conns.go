package conns

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/time/rate"
)

// Defaults of [Options].
const (
	DefaultMaxConns       = 20_000
	DefaultRequestTimeout = 10 * time.Second
	DefaultWriteTimeout   = 30 * time.Second
)

// Options configures a [Server]. The zero value of a field means its default.
type Options struct {
	// MaxConns is how many connections there may be; default [DefaultMaxConns].
	MaxConns int

	// MaxPerClient is how many connections one client may have; default: as many as there may
	// be. See [Clients].
	MaxPerClient int

	// Refusal is sent to a connection beyond a limit before it is closed.
	Refusal []byte

	// IdleTimeout is how long a connection may be without a request; default: for ever.
	IdleTimeout time.Duration

	// RequestTimeout is how long a request may take to come in, from its first byte;
	// default [DefaultRequestTimeout].
	RequestTimeout time.Duration

	// WriteTimeout bounds the time a client has to read its replies; default [DefaultWriteTimeout].
	WriteTimeout time.Duration

	// Budget bounds the memory of unread output; default: one of [DefaultBudget] bytes. While it is
	// spent, a client gets replies only after it has read the earlier ones.
	Budget *Budget

	// Loops is the number of event loops for unencrypted connections on a system with epoll;
	// default: one for two processors. With a negative number each connection has a goroutine.
	Loops int

	// TLS encrypts the connections; nil: nothing does. A handshake may take RequestTimeout.
	TLS *tls.Config

	// NeedsTLS is sent to a client that begins without TLS where it must, before its connection
	// is closed.
	NeedsTLS []byte

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger
}

// A Server serves connections. Its methods are safe for concurrent use.
type Server struct {
	ctx     context.Context
	handle  Handler
	opts    Options
	full    rate.Sometimes // bounds log lines about connections beyond a limit
	failed  rate.Sometimes // bounds those about handshakes
	clients Clients        // counted with a MaxPerClient

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	loops     []*loop
	nextLoop  int
	conns     map[peer]struct{}
	away      int // open connections after a handover
	handing   int // connections on their way there
	refused   int64
	stopping  bool
	drained   bool
	running   sync.WaitGroup // loops
	stopped   chan struct{}  // closed when Shutdown begins
	empty     chan struct{}  // closes after that, with the last connection
}

// New returns a server. What its sessions do later gets ctx.
func New(ctx context.Context, handle Handler, opts *Options) *Server {
	s := &Server{
		ctx:       ctx,
		handle:    handle,
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[peer]struct{}),
		stopped:   make(chan struct{}),
		empty:     make(chan struct{}),
		full:      rate.Sometimes{Interval: time.Minute},
		failed:    rate.Sometimes{Interval: time.Minute},
	}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.MaxConns = cmp.Or(s.opts.MaxConns, DefaultMaxConns)
	s.opts.RequestTimeout = cmp.Or(s.opts.RequestTimeout, DefaultRequestTimeout)
	s.opts.WriteTimeout = cmp.Or(s.opts.WriteTimeout, DefaultWriteTimeout)
	s.opts.Budget = cmp.Or(s.opts.Budget, NewBudget(DefaultBudget))
	s.opts.Logger = cmp.Or(s.opts.Logger, slog.New(slog.DiscardHandler))
	s.opts.Loops = cmp.Or(s.opts.Loops, max(runtime.GOMAXPROCS(0)/2, 1))
	if s.opts.TLS != nil {
		s.opts.Loops = -1
	}
	return s
}

// Serve accepts connections from l until [Server.Shutdown], and then returns nil; an error
// says why l accepts no more. It closes l.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	if !s.addListener(l) {
		return nil
	}
	var pause time.Duration
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			pause = 0
			s.admit(conn)
		case s.isStopping():
			return nil
		case !isTemporary(err):
			return err
		default: // as net/http does: what is short may come back
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.opts.Logger.Warn("a connection was not accepted", "err", err, "pause", pause)
			s.sleep(pause)
		}
	}
}

// isTemporary tells an error of Accept after which the next one may succeed.
func isTemporary(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (s *Server) sleep(d time.Duration) {
	select {
	case <-s.stopped:
	case <-time.After(d):
	}
}

// admit starts to serve conn, or refuses it.
func (s *Server) admit(conn net.Conn) {
	if c := s.newLoopConn(conn); c != nil {
		if err := s.add(c); err != nil {
			c.release()
			s.refuse(conn, err)
			return
		}
		_ = conn.Close() // the loop has a descriptor of its own
		c.begin()
		return
	}
	c := newStream(s, conn)
	if err := s.add(c); err != nil {
		s.refuse(conn, err)
		return
	}
	go c.serve()
}

// Why a connection finds no place.
var (
	errStopping = errors.New("the server is stopping")

	// ErrMaxConns reports that the number of connections has reached its limit.
	ErrMaxConns = errors.New("there are as many as limits.connections allows")

	// ErrMaxPerClient says that its client has as many as it may.
	ErrMaxPerClient = errors.New("its client has as many as limits.connections_per_client allows")
)

// refuse answers a client beyond the limit.
func (s *Server) refuse(conn net.Conn, why error) {
	s.full.Do(func() {
		s.opts.Logger.Warn("a connection was closed", "err", why, "from", conn.RemoteAddr())
	})
	if s.opts.TLS == nil { // else they would first have to shake hands
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // a vanished client needs no answer
		_, _ = conn.Write(s.opts.Refusal)
	}
	_ = conn.Close()
}

func (s *Server) addListener(l net.Listener) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.listeners[l] = struct{}{}
	s.startLoops()
	return true
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// add admits c, or returns the reason against it.
func (s *Server) add(c peer) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch limit := s.opts.MaxPerClient; {
	case s.stopping:
		err = errStopping
	case len(s.conns)+s.away >= s.opts.MaxConns:
		err = ErrMaxConns
	case limit > 0 && s.clients.Add(c.RemoteAddr()) > limit:
		s.clients.Remove(c.RemoteAddr())
		err = ErrMaxPerClient
	}
	if err != nil {
		s.refused++
		return err
	}
	s.conns[c] = struct{}{}
	return nil
}

func (s *Server) remove(c peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.conns[c]; ok { // else it was handed over
		s.leave(c.RemoteAddr())
	}
	delete(s.conns, c)
	s.checkEmpty()
}

// leave has a connection not count for its client any more.
func (s *Server) leave(client net.Addr) {
	if s.opts.MaxPerClient > 0 {
		s.clients.Remove(client)
	}
}

// checkEmpty ends the loops when the last connection has; s.mu is held.
func (s *Server) checkEmpty() {
	if !s.stopping || len(s.conns)+s.handing > 0 || s.drained {
		return
	}
	s.drained = true
	for _, l := range s.loops {
		l.post(l.quit)
	}
	close(s.empty)
}

// recoverFault keeps a fault in one connection from ending the others.
func (s *Server) recoverFault() {
	if reason := recover(); reason != nil {
		s.logFault(reason)
	}
}

func (s *Server) logFault(reason any) {
	s.opts.Logger.Error("a connection was closed by a fault of this program", "panic", reason, "stack", string(debug.Stack()))
}

// Stats returns the number of connections, and of refused ones.
func (s *Server) Stats() (open int, refused int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns) + s.away, s.refused
}

// Shutdown accepts no more connections, has the server answer the requests that it has read, and
// waits for the end of all connections, or of ctx, whose error it then returns. It does not wait
// for connections after a handover.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	select {
	case <-s.empty:
		s.running.Wait()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return
	}
	s.stopping = true
	close(s.stopped)
	for l := range s.listeners {
		_ = l.Close() // Serve ends with it
	}
	for c := range s.conns {
		c.stop()
	}
	s.checkEmpty()
}

// Close is Shutdown without a wait: connections are cut.
func (s *Server) Close() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.cut()
	}
}
