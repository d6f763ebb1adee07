package load

import (
	"context"
	"errors"
	"runtime"
	"time"
)

// A client sends requests, one pipeline after another.
type client struct {
	*run
	conn  Conn
	feed  *feed
	rec   *record
	next  int // the key to ask for
	calls []*Call
}

func (r *run) newClient(i int) *client {
	c := &client{run: r, conn: r.opts.Target.Open(), feed: r.checker.feed(), rec: r.records[i%len(r.records)], next: i % len(r.opts.Keys)}
	calls := make([]Call, r.opts.Pipeline) // next to each other in memory
	for i := range calls {
		calls[i].Count = r.opts.Count
		c.calls = append(c.calls, &calls[i])
	}
	return c
}

// loop sends the due requests until the end. The end of ctx cuts the last one short.
func (c *client) loop(ctx context.Context) {
	defer c.conn.Close()
	defer c.feed.flush()
	for {
		due, ok := c.wait()
		if !ok {
			return
		}
		c.prepare()
		Do(ctx, c.conn, c.calls)
		now := c.elapsed()
		if ctx.Err() == nil {
			c.note(due, now)
		}
		c.keep()
		c.pause()
	}
}

// wait waits for the next request and returns when it was due.
func (c *client) wait() (due time.Duration, ok bool) {
	if c.opts.Rate > 0 {
		due, ok = <-c.due
		return due, ok
	}
	runtime.Gosched() // an answer that comes at once would let this client keep the processor from the others
	due = c.elapsed()
	return due, due < c.end() && c.over.Err() == nil
}

func (c *client) prepare() {
	for _, call := range c.calls {
		if c.next >= len(c.opts.Keys) {
			c.next = 0
		}
		call.Key, call.key, call.Err = c.opts.Keys[c.next].Name, c.next, nil
		call.IDs.reset()
		c.next++
	}
}

func (c *client) note(due, now time.Duration) {
	c.rec.mu.Lock()
	defer c.rec.mu.Unlock()
	c.rec.count(c.calls, now-due, now, due >= c.opts.WarmUp)
}

// keep compares the received IDs, also in the warm-up and after an interruption.
func (c *client) keep() {
	for _, call := range c.calls {
		if call.Err == nil {
			c.feed.add(call.key, &call.IDs)
		}
	}
}

// retryPause is how long a client leaves alone a server that it cannot connect to.
const retryPause = 20 * time.Millisecond

func (c *client) pause() {
	if c.opts.Rate > 0 || !errors.Is(c.calls[0].Err, errConnect) {
		return
	}
	select {
	case <-time.After(retryPause):
	case <-c.over.Done():
	}
}
