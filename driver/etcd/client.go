package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"

	"github.com/leaf-id/leaf"
)

const (
	// A member has from leastPatience to mostPatience for one answer: little at first,
	// because a write that went to a leader which is gone is never answered, though
	// another leader may be there by now.
	leastPatience = time.Second
	mostPatience  = 5 * time.Second

	// goneAfter is how long a member must have been silent to be given up when the
	// caller's own time was shorter.
	goneAfter = 500 * time.Millisecond
)

// A client makes transactions. It stays with one member until that fails.
type client struct {
	prefix    string // of all keys, with its slash
	anonymous bool   // connections are encrypted, and show no certificate of the client

	links   []*link
	logger  *slog.Logger
	current atomic.Int64 // the link in use, modulo their number
	silent  atomic.Int64 // how many links in a row were given up because nothing came
	blamed  atomic.Pointer[string]

	home      atomic.Pointer[membership] // of the first member that answered
	surveyed  atomic.Bool
	surveying sync.Mutex

	ctx    context.Context // ends with close
	cancel context.CancelFunc
}

// newClient does not connect.
func newClient(endpoints []string, o Options) (*client, error) {
	addresses, err := checkAddresses(endpoints)
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &client{prefix: o.Prefix + "/", logger: o.Logger}
	c.anonymous = o.TLS != nil && len(o.TLS.Certificates) == 0 && o.TLS.GetClientCertificate == nil
	c.ctx, c.cancel = context.WithCancel(context.Background())
	for _, addr := range addresses {
		l, err := newLink(addr, o)
		if err != nil {
			_ = c.close() // nothing was sent
			return nil, err
		}
		c.links = append(c.links, l)
	}
	c.current.Store(rand.Int64N(int64(len(c.links))))
	return c, nil
}

func (c *client) String() string {
	addresses := make([]string, len(c.links))
	for i, l := range c.links {
		addresses[i] = l.addr
	}
	return strings.Join(addresses, ",")
}

func (c *client) link(at int64) *link { return c.links[at%int64(len(c.links))] }

// ask is send for a transaction that writes nothing: it goes from member to member.
func (c *client) ask(ctx context.Context, t txn) (resp *clientv3.TxnResponse, err error) {
	var failed error
	for range c.links {
		resp, err = c.send(ctx, t)
		if err == nil || !memberFault(err) {
			return resp, err
		}
		if failed == nil {
			failed = err
		} else {
			failed = fmt.Errorf("%w; %w", failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// send sends a transaction once, to the member in use. After an error that is the
// member's the next call goes to another one.
func (c *client) send(ctx context.Context, t txn) (*clientv3.TxnResponse, error) {
	if err := c.survey(ctx); err != nil {
		return nil, err
	}
	at := c.current.Load()
	l := c.link(at)
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	resp, err := l.do(limited, t)
	if err == nil {
		if time.Since(began) < leastPatience/2 {
			c.silent.Store(0)
		}
		if err := c.same(l.addr, resp.Header); err != nil {
			return nil, err // what was written is lost: it is of no counter that is in use
		}
		return resp, nil
	}
	if c.ctx.Err() != nil {
		return nil, leaf.ErrClosed
	}
	if memberFault(err) && (ctx.Err() == nil || time.Since(began) > goneAfter) {
		c.giveUp(at, err)
	}
	return nil, &memberError{l.addr, err}
}

// patience is how long a member has for an answer. It doubles whenever all members in
// turn were silent for so long, since then they are slow rather than gone.
func (c *client) patience() time.Duration {
	return min(leastPatience<<min(c.silent.Load()/int64(len(c.links)), 8), mostPatience)
}

func (c *client) giveUp(at int64, err error) {
	reason := err.Error()
	if last := c.blamed.Swap(&reason); last == nil || *last != reason {
		c.logger.Warn("etcd member failed", "member", c.link(at).addr, "err", words(err))
	}
	if c.current.CompareAndSwap(at, at+1) && code(err) == codes.DeadlineExceeded {
		c.silent.Add(1)
	}
}

func (c *client) close() error {
	if c.ctx.Err() != nil {
		return nil
	}
	c.cancel()
	var failed error
	for _, l := range c.links {
		if err := l.etcd.Close(); !errors.Is(err, context.Canceled) { // which is how it says that it is closed
			failed = cmp.Or(failed, err)
		}
	}
	return failed
}
