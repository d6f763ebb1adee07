package redis

import (
	"context"
	"errors"
	"net"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// silence is how long a server must have kept a call waiting for its connections to be
// given up; a caller with less patience than that tells nothing about them.
const silence = time.Second

// conns are the connections to the servers. They are given up together: when an
// address has moved, or a firewall has forgotten what passed through it, all those that
// stand have fallen silent, and each would cost a call of its own.
type conns struct {
	node    *goredis.Client        // nil with a cluster
	cluster *goredis.ClusterClient // nil without

	calls int // under way; guarded by client.mu
}

// newConns does not connect.
func (c *client) newConns() *conns {
	switch c.config.Mode {
	case Single:
		return &conns{node: goredis.NewClient(c.options())}
	case Sentinel:
		return &conns{node: goredis.NewFailoverClient(c.failoverOptions())}
	}
	return &conns{cluster: goredis.NewClusterClient(c.clusterOptions())}
}

// primary returns the server that holds a key.
func (s *conns) primary(ctx context.Context, key string) (*goredis.Client, error) {
	if s.cluster == nil {
		return s.node, nil
	}
	return s.cluster.MasterForKey(ctx, key)
}

func (s *conns) close() error {
	if s.cluster != nil {
		return s.cluster.Close()
	}
	return s.node.Close()
}

// acquire returns the connections for one call, which releases them.
func (c *client) acquire() *conns {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns.calls++
	return c.conns
}

// release ends a call. If it met with silence the calls after it have new connections;
// the old ones are closed when the last call on them has ended.
func (c *client) release(s *conns, silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.calls--
	if silent && s == c.conns && !c.closed.Load() {
		c.conns = c.newConns()
	}
	if s != c.conns && s.calls == 0 {
		_ = s.close() // nothing is to be learnt from it
	}
}

// refresh has the nodes of a cluster looked up anew; a sentinel's are with each connection.
func (c *client) refresh(ctx context.Context) {
	conns := c.acquire()
	defer c.release(conns, false)
	if conns.cluster != nil {
		conns.cluster.ReloadState(ctx)
	}
}

// patience is how long a call may take although the connections are in order.
func (c *client) patience() time.Duration {
	if c.confirms() {
		return silence + 2*c.config.WaitTimeout
	}
	return silence
}

// isSilence reports whether an answer did not come, on a connection that stood.
func isSilence(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "read" && op.Timeout()
}
