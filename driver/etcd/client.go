package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
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

// A client makes transactions on one space. It stays with one member until that fails.
type client struct {
	space
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
func newClient(endpoints []string, o Options, k kind) (*client, error) {
	addresses, err := checkAddresses(endpoints)
	if err != nil {
		return nil, err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &client{space: k.at(o.Prefix), logger: o.Logger}
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

// connected reports whether the member in use can be reached, as far as is known.
func (c *client) connected() bool { return c.link(c.current.Load()).connected() }

// A held is what a key holds; the zero held stands for no key.
type held struct {
	text     string
	revision int64 // of the last write: it never comes back
}

// is returns what must be so for a key to hold h. The revision alone would do, were it
// not that one comes back when the cluster is restored from a backup.
func (h held) is(key string) []clientv3.Cmp {
	if h.revision == 0 {
		return []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(key), "=", 0)}
	}
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.ModRevision(key), "=", h.revision),
		clientv3.Compare(clientv3.Value(key), "=", h.text),
	}
}

// version is h as a [segment.Grant] carries it.
func (h held) version() string { return strconv.FormatInt(h.revision, 10) + " " + h.text }

func parseVersion(version string) (held, error) {
	revision, text, _ := strings.Cut(version, " ")
	n, err := strconv.ParseInt(revision, 10, 64)
	if err != nil || n < 1 {
		return held{}, fmt.Errorf("%w: %q is no version of a grant", leaf.ErrInvalid, version)
	}
	return held{text, n}, nil
}

func heldBy(answer *etcdserverpb.ResponseOp) held {
	kvs := answer.GetResponseRange().GetKvs()
	if len(kvs) == 0 {
		return held{}
	}
	return held{string(kvs[0].Value), kvs[0].ModRevision}
}

// load returns what a key holds now.
func (c *client) load(ctx context.Context, key string) (held, error) {
	resp, err := c.read(ctx, clientv3.OpGet(key))
	if err != nil {
		return held{}, err
	}
	return heldBy(resp.Responses[0]), nil
}

// page returns up to limit keys of the space behind a name, in order.
func (c *client) page(ctx context.Context, after *string, limit int64) ([]*mvccpb.KeyValue, error) {
	from := c.folder
	if after != nil {
		from += *after + "\x00"
	}
	resp, err := c.read(ctx, clientv3.OpGet(from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(c.folder)), clientv3.WithLimit(limit)))
	if err != nil {
		return nil, err
	}
	return resp.Responses[0].GetResponseRange().GetKvs(), nil
}

// read reads keys as they are now, agreed upon by the majority. It asks one member
// after the other until one answers.
func (c *client) read(ctx context.Context, get clientv3.Op) (*clientv3.TxnResponse, error) {
	resp, err := c.ask(ctx, txn{then: []clientv3.Op{get, clientv3.OpGet(c.marker)}})
	if err != nil {
		return nil, err
	}
	return resp, c.fault(heldBy(resp.Responses[1]))
}

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

// put has a key hold text if it holds old, sent once. It returns what the key then
// holds.
func (c *client) put(ctx context.Context, key string, old held, text string) (changed bool, now held, err error) {
	changed, now, _, err = c.change(ctx, key, old, text, txn{then: []clientv3.Op{clientv3.OpPut(key, text)}})
	return changed, now, err
}

// change carries out t.then, which has a key hold text, if the key holds old, and
// t.otherwise if not, sent once. It returns their answers and what the key then holds.
func (c *client) change(ctx context.Context, key string, old held, text string, t txn) (changed bool, now held, answers []*etcdserverpb.ResponseOp, err error) {
	t.compare = append(old.is(key), clientv3.Compare(clientv3.Value(c.marker), "=", format))
	t.otherwise = append([]clientv3.Op{clientv3.OpGet(key), clientv3.OpGet(c.marker)}, t.otherwise...)
	resp, err := c.send(ctx, t)
	switch {
	case err != nil:
		return false, held{}, nil, err
	case resp.Succeeded:
		return true, held{text, resp.Header.Revision}, resp.Responses, nil
	}
	return false, heldBy(resp.Responses[0]), resp.Responses[2:], c.fault(heldBy(resp.Responses[1]))
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
