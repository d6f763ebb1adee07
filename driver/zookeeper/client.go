package zookeeper

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
)

const (
	maxCalls     = 64                     // in flight at a time
	retryPause   = 200 * time.Millisecond // at least, between two attempts to connect
	closeTimeout = 5 * time.Second
)

// A client makes calls over one link at a time, and connects anew when there is a
// call to make and no link.
type client struct {
	servers []string
	session time.Duration
	logger  *slog.Logger

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	slots  chan struct{}
	work   sync.WaitGroup

	mu     sync.Mutex
	closed bool
	link   *link
	try    *attempt // under way
	tried  time.Time
	server int // where the next attempt begins
}

// An attempt connects to the first server that gives a session.
type attempt struct {
	done chan struct{} // closed when link and err are set
	link *link
	err  error
}

func newClient(servers []string, session time.Duration, logger *slog.Logger) *client {
	c := &client{servers: servers, session: session, logger: logger,
		slots: make(chan struct{}, maxCalls), server: rand.IntN(len(servers))}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

func (c *client) String() string { return strings.Join(c.servers, ",") }

// call runs do on a connection. It returns when ctx ends, while do may still run:
// what do returns then is dropped, and what it wrote is not known.
func call[T any](ctx context.Context, c *client, do func(*zk.Conn) (T, error)) (T, error) {
	var zero T
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	select {
	case c.slots <- struct{}{}:
	case <-ctx.Done():
		return zero, fmt.Errorf("zookeeper at %s does not answer: %w", c, ctx.Err())
	}
	l, err := c.connected(ctx)
	if err != nil {
		<-c.slots
		return zero, err
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	if !c.spawn(func() {
		defer func() { <-c.slots }()
		value, err := do(l.zk)
		done <- result{value, err}
	}) {
		<-c.slots
		return zero, leaf.ErrClosed
	}
	select {
	case r := <-done:
		return r.value, l.explain(r.err)
	case <-ctx.Done():
		return zero, fmt.Errorf("zookeeper at %s does not answer: %w", l.addr, ctx.Err())
	}
}

// spawn runs f, which Close waits for.
func (c *client) spawn(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.work.Go(f)
	return true
}

// connected returns the link, and has it made where there is none.
func (c *client) connected(ctx context.Context) (*link, error) {
	c.mu.Lock()
	l, try := c.link, c.try
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, leaf.ErrClosed
	case l != nil && !l.lost():
		c.mu.Unlock()
		return l, nil
	case try == nil:
		try = &attempt{done: make(chan struct{})}
		c.try = try
		c.work.Go(func() { c.connect(try) })
	}
	c.mu.Unlock()
	select {
	case <-try.done:
		return try.link, try.err
	case <-ctx.Done():
		return nil, fmt.Errorf("no connection to zookeeper at %s yet: %w", c, ctx.Err())
	}
}

func (c *client) connect(try *attempt) {
	link, err := c.reach()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer close(try.done)
	c.try, c.tried = nil, time.Now()
	switch {
	case err != nil:
		try.err = fmt.Errorf("no connection to zookeeper at %s: check that it runs, and the hosts and ports in the URL: %w", c, err)
		if c.closed {
			try.err = leaf.ErrClosed
		}
	case c.closed:
		link.giveUp()
		try.err = leaf.ErrClosed
	default:
		c.logger.Info("connected to zookeeper", "server", link.addr)
		c.link, try.link = link, link
	}
}

// reach tries each server once, beginning with another one each time. It leaves some
// time after the previous attempt, so that servers in trouble are not stormed.
func (c *client) reach() (_ *link, err error) {
	pause := time.Until(c.tried.Add(retryPause + rand.N(retryPause)))
	select {
	case <-time.After(pause):
	case <-c.ctx.Done():
		return nil, c.ctx.Err()
	}
	for range c.servers {
		addr := c.servers[c.server]
		c.server = (c.server + 1) % len(c.servers)
		l, failed := c.open(addr)
		if failed == nil {
			return l, nil
		}
		if err == nil {
			err = failed
		} else {
			err = fmt.Errorf("%w; %w", err, failed)
		}
	}
	return nil, err
}

func (c *client) open(addr string) (*link, error) {
	l, err := dial(c.ctx, addr, c.session, c.logger, &c.work)
	if err != nil {
		return nil, err
	}
	if err := l.await(c.ctx, c.session); err != nil {
		l.giveUp()
		return nil, err
	}
	return l, nil
}

// close ends the connection and waits until all that runs has ended.
func (c *client) close() {
	c.mu.Lock()
	c.closed = true
	if c.link != nil {
		c.link.giveUp()
	}
	c.mu.Unlock()
	c.cancel()
	ended := make(chan struct{})
	go func() { c.work.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(closeTimeout):
		c.logger.Warn("the zookeeper client does not come to rest", "servers", c.String())
	}
}
