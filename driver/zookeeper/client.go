package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
)

const (
	maxCalls     = 64 // in flight at a time
	closeTimeout = 5 * time.Second
)

// A client makes calls over one session at a time. After the loss of a session the next call begins
// another one.
type client struct {
	servers []string
	timeout time.Duration // of a session
	logger  *slog.Logger

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	slots  chan struct{}
	work   sync.WaitGroup
	dials  atomic.Uint32 // the server to try next, modulo their number

	mu      sync.Mutex
	session *session
}

func newClient(servers []string, o Options) *client {
	c := &client{servers: servers, timeout: o.SessionTimeout, logger: o.Logger, slots: make(chan struct{}, maxCalls)}
	c.dials.Store(rand.Uint32())
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *client) String() string { return strings.Join(c.servers, ",") }

// do is call for a call without a result.
func do(ctx context.Context, c *client, f func(*zk.Conn) error) error {
	_, err := call(ctx, c, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, f(conn) })
	return err
}

// call runs f on a connection with a session. It returns at the end of ctx, while f may still run:
// then it drops the result, and the writes of f are unknown.
func call[T any](ctx context.Context, c *client, f func(*zk.Conn) (T, error)) (value T, err error) {
	silent := func() error { return fmt.Errorf("zookeeper at %s does not answer: %w", c, ctx.Err()) }
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return value, silent()
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	run := func() {
		defer func() { <-c.slots }()
		var r result
		s, err := c.connected()
		switch {
		case err != nil:
			r.err = err
		case ctx.Err() != nil:
			r.err = silent() // the caller may not have noticed yet
		default:
			r.value, r.err = f(s.zk)
			r.err = s.explain(r.err)
		}
		done <- r
	}
	if !c.spawn(run) {
		<-c.slots
		return value, leaf.ErrClosed
	}
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		return value, silent()
	}
}

// spawn runs f, which close waits for.
func (c *client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return false
	}
	c.work.Go(f)
	return true
}

// connected returns the session once it exists, or an error if no server gives one.
func (c *client) connected() (*session, error) {
	s, err := c.current()
	if err == nil && s.zk.State() != zk.StateHasSession {
		_, _, err = s.zk.Exists("/") // waits for the session
		err = s.explain(err)
	}
	return s, err
}

func (c *client) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		return nil, leaf.ErrClosed
	}
	if c.session == nil || c.session.lost.Load() {
		s, err := newSession(c)
		if err != nil {
			return nil, err
		}
		c.session = s
	}
	return c.session, nil
}

// close ends the session, unless it is the caller's, and waits until all that runs has ended.
func (c *client) close() {
	c.mu.Lock()
	c.cancel()
	s := c.session
	c.mu.Unlock()
	if s != nil && !s.shared {
		s.giveUp()
	}
	ended := make(chan struct{})
	go func() { c.work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
		c.logger.Warn("the zookeeper client did not shut down in time", "servers", c.String())
	}
}

// explain says where an error comes from, and what to do about it.
func (s *session) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case s.client.ctx.Err() != nil:
		return leaf.ErrClosed
	case errors.Is(err, zk.ErrNoServer) && !s.lost.Load():
		return fmt.Errorf("no connection to zookeeper at %s: check that it runs, and the hosts and ports: %w: %s", s.client, err, s.failures())
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("zookeeper at %s: an ACL keeps out a client that does not log in: open the nodes "+
			"(setAcl -R PATH world:anyone:cdrwa), or use another chroot: %w", s.zk.Server(), err)
	case errors.Is(err, zk.ErrConnectionClosed) || s.lost.Load():
		return fmt.Errorf("zookeeper at %s: %w", s.zk.Server(), err)
	}
	return err
}
