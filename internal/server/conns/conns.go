package conns

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
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

// A Handler serves one connection and returns when it is done with it. It ends when Read
// or Write fails; ctx ends when the server cannot wait for it any longer.
type Handler func(ctx context.Context, c *Conn)

// Options configures a [Server]. The zero value of a field means its default.
type Options struct {
	// MaxConns is how many connections there may be; default [DefaultMaxConns].
	MaxConns int

	// Refusal is sent to a connection beyond MaxConns before it is closed.
	Refusal []byte

	// IdleTimeout is how long a connection may be without a request; default: for ever.
	IdleTimeout time.Duration

	// RequestTimeout is how long a request may take to come in, from its first byte;
	// default [DefaultRequestTimeout].
	RequestTimeout time.Duration

	// WriteTimeout is how long a client may leave unread what it was sent; default
	// [DefaultWriteTimeout].
	WriteTimeout time.Duration

	// Logger receives what an operator should know; nil discards it.
	Logger *slog.Logger
}

// A Server serves connections. Its methods are safe for concurrent use.
type Server struct {
	ctx    context.Context
	handle Handler
	opts   Options
	full   rate.Sometimes // of what is logged about connections beyond MaxConns
	unread atomic.Int64   // bytes that clients have not read yet

	mu        sync.Mutex
	listeners map[net.Listener]struct{}
	conns     map[*Conn]struct{}
	refused   int64
	stopping  bool
	stopped   chan struct{} // closed when Shutdown begins
	empty     chan struct{} // closed when there is no connection any more after that
}

// New returns a server whose handlers get ctx.
func New(ctx context.Context, handle Handler, opts *Options) *Server {
	s := &Server{
		ctx:       ctx,
		handle:    handle,
		listeners: make(map[net.Listener]struct{}),
		conns:     make(map[*Conn]struct{}),
		stopped:   make(chan struct{}),
		empty:     make(chan struct{}),
		full:      rate.Sometimes{Interval: time.Minute},
	}
	if opts != nil {
		s.opts = *opts
	}
	s.opts.MaxConns = cmp.Or(s.opts.MaxConns, DefaultMaxConns)
	s.opts.RequestTimeout = cmp.Or(s.opts.RequestTimeout, DefaultRequestTimeout)
	s.opts.WriteTimeout = cmp.Or(s.opts.WriteTimeout, DefaultWriteTimeout)
	s.opts.Logger = cmp.Or(s.opts.Logger, slog.New(slog.DiscardHandler))
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
		case !isPassing(err):
			return err
		default: // as net/http does: what is short may come back
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			s.opts.Logger.Warn("a connection was not accepted", "err", err, "pause", pause)
			s.sleep(pause)
		}
	}
}

// isPassing tells an error of Accept after which the next one may succeed.
func isPassing(err error) bool {
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
	c := newConn(s, conn)
	if s.add(c) {
		go s.serve(c)
		return
	}
	s.full.Do(func() {
		s.opts.Logger.Warn("a connection was closed: there are as many as are allowed", "limit", s.opts.MaxConns)
	})
	if c.raw != nil { // else it would first have to shake hands
		_ = conn.SetWriteDeadline(time.Now().Add(time.Second)) // a client that has gone needs no answer
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
	return true
}

func (s *Server) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

func (s *Server) add(c *Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || len(s.conns) >= s.opts.MaxConns {
		s.refused++
		return false
	}
	s.conns[c] = struct{}{}
	return true
}

func (s *Server) remove(c *Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	if s.stopping && len(s.conns) == 0 {
		close(s.empty)
	}
}

// serve serves c to its end.
func (s *Server) serve(c *Conn) {
	defer s.remove(c)
	defer c.finish()
	defer func() {
		if reason := recover(); reason != nil {
			s.opts.Logger.Error("a connection was closed by a fault of this program", "panic", reason, "stack", string(debug.Stack()))
		}
	}()
	if c.handshake(s.ctx) == nil {
		s.handle(s.ctx, c)
	}
}

// Stats says how many connections there are, and how many were refused.
func (s *Server) Stats() (open int, refused int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.conns), s.refused
}

// Shutdown accepts no more connections, has handlers answer the requests that they have
// read, and waits for their end, or that of ctx, whose error it then returns.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	select {
	case <-s.empty:
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
	if len(s.conns) == 0 {
		close(s.empty)
	}
}

// Close is Shutdown without a wait: connections are cut.
func (s *Server) Close() {
	s.stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Conn.Close() // its handler ends with it
	}
}
