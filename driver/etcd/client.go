package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/failures"
)

const (
	// A member has from leastTimeout to mostTimeout for one answer. Little at first, because a
	// vanished leader never answers a write, although another leader may exist by now.
	leastTimeout = time.Second
	mostTimeout  = 5 * time.Second

	// goneAfter is how long a member must have been silent to be given up when the
	// caller's own time was shorter.
	goneAfter = 500 * time.Millisecond

	// surveyTimeout is how long members have to tell which cluster they are of before the
	// first call goes ahead without them.
	surveyTimeout = 500 * time.Millisecond
)

// A client makes transactions. It stays with one member until that fails.
type client struct {
	etcd      *clientv3.Client
	urls      []string // of the members
	anonymous bool     // connections are encrypted, and show no certificate of the client
	logger    *slog.Logger

	turns      bool         // the client is ours: it has one endpoint at a time
	current    atomic.Int64 // which of urls, modulo their number
	silent     atomic.Int64 // how many calls in a row had no answer
	lastLogged atomic.Value // the last logged error, as text

	home      atomic.Pointer[membership] // of the first member that answered
	revision  atomic.Int64               // the highest of all answers
	wentBack  atomic.Bool                // the revision has gone back
	surveyed  atomic.Bool
	surveying sync.Mutex

	ctx    context.Context // ends with close
	cancel context.CancelFunc
}

// A membership is which cluster a member was found to be of.
type membership struct {
	cluster uint64
	addr    string
}

func newClient(etcd *clientv3.Client, urls []string, o Options) *client {
	c := &client{etcd: etcd, urls: urls, logger: o.Logger}
	c.anonymous = o.TLS != nil && len(o.TLS.Certificates) == 0 && o.TLS.GetClientCertificate == nil
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// connect returns a client that repeats nothing. It does not connect.
func connect(url string, o Options) (*clientv3.Client, error) {
	login := &login{user: o.Username, password: o.Password, token: make(chan string, 1)}
	login.token <- ""
	return clientv3.New(clientv3.Config{
		Endpoints:            []string{url},
		TLS:                  o.TLS,
		Logger:               zap.NewNop(),
		MaxUnaryRetries:      1, // attempts
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: 5 * time.Second,
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(login.intercept),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: 3 * time.Second,
			}),
		},
	})
}

// A login adds a user's token to calls. The library would log in once, and after the token's end
// retry with the expired token, which etcd 3.4 refuses without end.
type login struct {
	user, password string
	token          chan string // holds the token; empty while a call asks for another one
}

// intercept makes a call; a second time, if the first one was turned away at the door
// because its token has expired. On a connection that cannot be made the call fails with
// the reason, where the library would have it wait until its context ends.
func (l *login) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	opts ...grpc.CallOption) error {
	opts = append(opts, grpc.WaitForReady(false))
	if l.user == "" || method == etcdserverpb.Auth_Authenticate_FullMethodName {
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	send := func(token string) error {
		ctx := ctx
		if token != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	}
	token, err := l.get(ctx, conn, "none")
	if err != nil {
		return err
	}
	if err = send(token); !tokenRefused(rpctypes.Error(err)) {
		return err
	}
	if token, err = l.get(ctx, conn, token); err != nil {
		return err
	}
	return send(token)
}

// get returns the token. If that is the refused one, it requests another.
func (l *login) get(ctx context.Context, conn *grpc.ClientConn, refused string) (string, error) {
	select {
	case token := <-l.token:
		defer func() { l.token <- token }()
		if token != refused {
			return token, nil
		}
		resp, err := etcdserverpb.NewAuthClient(conn).Authenticate(ctx, &etcdserverpb.AuthenticateRequest{Name: l.user, Password: l.password})
		if err != nil {
			return "", err
		}
		token = resp.Token
		return token, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func tokenRefused(err error) bool {
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrUserEmpty)
}

func (c *client) String() string {
	addrs := make([]string, len(c.urls))
	for i, url := range c.urls {
		addrs[i] = address(url)
	}
	return strings.Join(addrs, ",")
}

func address(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

func (c *client) url(at int64) string { return c.urls[at%int64(len(c.urls))] }

// addr returns the member in use.
func (c *client) addr(at int64) string {
	if !c.turns {
		return c.String()
	}
	return address(c.url(at))
}

// read is send for a transaction that writes nothing: it goes from member to member.
func (c *client) read(ctx context.Context, op clientv3.Op) (answer *etcdserverpb.RangeResponse, err error) {
	var failed failures.List
	for range c.urls {
		resp, err := c.send(ctx, nil, op)
		if err == nil {
			return resp.Responses[0].GetResponseRange(), nil
		}
		failed = append(failed, err)
		if !memberFault(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, failed
}

// send sends a transaction once, to the member in use. After an error of the member the next call
// goes to another one.
func (c *client) send(ctx context.Context, compare []clientv3.Cmp, then clientv3.Op, otherwise ...clientv3.Op) (*clientv3.TxnResponse, error) {
	if err := c.survey(ctx); err != nil {
		return nil, err
	}
	at, before := c.current.Load(), c.revision.Load()
	began := time.Now()
	limited, cancel := context.WithTimeout(clientv3.WithRequireLeader(ctx), c.timeout())
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	resp, err := c.etcd.Txn(limited).If(compare...).Then(then).Else(otherwise...).Commit()
	switch {
	case err == nil:
		if time.Since(began) < leastTimeout/2 {
			c.silent.Store(0)
		}
		if err := c.same(c.addr(at), resp.Header.GetClusterId()); err != nil {
			return nil, err // what another cluster wrote is lost: its counters are not in use
		}
		c.compareRevision(c.addr(at), before, resp.Header.GetRevision())
		return resp, nil
	case c.ctx.Err() != nil:
		return nil, leaf.ErrClosed
	case memberFault(err) && (ctx.Err() == nil || time.Since(began) > goneAfter):
		c.giveUp(at, err)
	}
	return nil, &memberError{c.addr(at), err}
}

// compareRevision notices lost writes. An answer has at least the revision of every answer from any
// member before its call was sent; an answer to an earlier call may have less.
func (c *client) compareRevision(addr string, before, got int64) {
	if got >= before {
		for highest := c.revision.Load(); got > highest && !c.revision.CompareAndSwap(highest, got); highest = c.revision.Load() {
		}
		return
	}
	c.revision.Store(got)
	c.wentBack.Store(true)
	c.logger.Error("etcd's revision went back: it was restored from a backup, or lost writes, while this process ran; IDs of the time since may exist twice; "+
		"stop every server, raise all counters, and start them", "etcd", addr, "before", before, "now", got)
}

// timeout is how long a member has for an answer. It doubles whenever all members in
// turn were silent for so long, since then they are slow rather than gone.
func (c *client) timeout() time.Duration {
	if len(c.urls) == 1 {
		return mostTimeout // without an alternative
	}
	return min(leastTimeout<<min(c.silent.Load()/int64(len(c.urls)), 8), mostTimeout)
}

func (c *client) giveUp(at int64, err error) {
	if !c.current.CompareAndSwap(at, at+1) {
		return
	}
	if reason := err.Error(); c.lastLogged.Swap(reason) != reason {
		c.logger.Warn("etcd member failed", "err", &memberError{c.addr(at), err})
	}
	if code(err) == codes.DeadlineExceeded {
		c.silent.Add(1)
	}
	if c.turns && len(c.urls) > 1 {
		c.etcd.SetEndpoints(c.url(at + 1))
	}
}

// survey asks the members for their cluster, before the first call and after any difference: a
// member that this client never uses could still serve others. It checks an absent member at its
// first answer.
func (c *client) survey(ctx context.Context) error {
	if len(c.urls) == 1 || c.surveyed.Load() {
		return nil
	}
	c.surveying.Lock()
	defer c.surveying.Unlock()
	if c.surveyed.Load() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, surveyTimeout)
	defer cancel()
	stop := context.AfterFunc(c.ctx, cancel)
	defer stop()
	clusters := make([]uint64, len(c.urls))
	var wg sync.WaitGroup
	for i, url := range c.urls {
		wg.Go(func() {
			if resp, err := c.etcd.Status(ctx, url); err == nil {
				clusters[i] = resp.Header.GetClusterId()
			}
		})
	}
	wg.Wait()
	for i, cluster := range clusters {
		if cluster == 0 {
			continue
		}
		c.surveyed.Store(true)
		if err := c.same(address(c.urls[i]), cluster); err != nil {
			return err
		}
	}
	return nil
}

// same reports an error if addr is of another cluster than those that answered before.
// The first one decides, for as long as the client lives.
func (c *client) same(addr string, cluster uint64) error {
	got := &membership{cluster, addr}
	c.home.CompareAndSwap(nil, got)
	home := c.home.Load()
	if home.cluster == cluster {
		return nil
	}
	c.surveyed.Store(false)
	return fmt.Errorf("etcd at %s is of cluster %x, and what answered at %s of cluster %x, which know nothing of each other's writes: "+
		"name the members of one cluster; if the cluster was restored, raise every counter and restart this process",
		addr, cluster, home.addr, home.cluster)
}

// server names the cluster, as segment.Grant.Server has it.
func (c *client) server() string { return strconv.FormatUint(c.home.Load().cluster, 16) }

func (c *client) close() error {
	if c.ctx.Err() != nil {
		return nil
	}
	c.cancel()
	if !c.turns {
		return nil
	}
	if err := c.etcd.Close(); !errors.Is(err, context.Canceled) { // that error is the normal result
		return err
	}
	return nil
}
