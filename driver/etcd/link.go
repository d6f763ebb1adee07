package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/metadata"
)

const (
	connectTimeout   = 3 * time.Second
	reconnectAtMost  = time.Second // between two attempts to connect
	keepAlive        = 10 * time.Second
	keepAliveTimeout = 5 * time.Second
)

// A link is the connection to one member. It connects when it is first used, and
// again after it was lost.
type link struct {
	addr           string
	etcd           *clientv3.Client
	user, password string

	login chan struct{} // held by the one call that asks for a token
	token atomic.Pointer[string]
}

// newLink does not connect. The client has a single endpoint and repeats nothing: the
// user's password is kept from it because it would log in when it is made.
func newLink(addr string, o Options) (*link, error) {
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints:            []string{endpoint(addr, o.TLS)},
		TLS:                  o.TLS,
		Logger:               zap.NewNop(),
		MaxUnaryRetries:      1, // attempts
		DialKeepAliveTime:    keepAlive,
		DialKeepAliveTimeout: keepAliveTimeout,
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(failFast),
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: reconnectAtMost},
				MinConnectTimeout: connectTimeout,
			}),
		},
	})
	if err != nil {
		return nil, err
	}
	return &link{addr: addr, etcd: etcd, user: o.Username, password: o.Password, login: make(chan struct{}, 1)}, nil
}

func endpoint(addr string, encryption *tls.Config) string {
	if encryption == nil {
		return "http://" + addr
	}
	return "https://" + addr
}

// failFast has a call on a connection that cannot be made fail with the reason, where
// the client of etcd would have it wait until its context ends.
func failFast(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, conn, append(opts, grpc.WaitForReady(false))...)
}

// A txn is a transaction of etcd.
type txn struct {
	compare         []clientv3.Cmp
	then, otherwise []clientv3.Op
}

// do sends a transaction once; twice, if the first one was turned away at the door
// because its token has expired.
func (l *link) do(ctx context.Context, t txn) (*clientv3.TxnResponse, error) {
	ctx = clientv3.WithRequireLeader(ctx)
	token, err := l.authenticate(ctx)
	if err != nil {
		return nil, err
	}
	resp, err := l.send(ctx, t, *token)
	if l.user == "" || !tokenRefused(err) {
		return resp, err
	}
	l.token.CompareAndSwap(token, nil)
	if token, err = l.authenticate(ctx); err != nil {
		return nil, err
	}
	return l.send(ctx, t, *token)
}

func (l *link) send(ctx context.Context, t txn, token string) (*clientv3.TxnResponse, error) {
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token)
	}
	return l.etcd.Txn(ctx).If(t.compare...).Then(t.then...).Else(t.otherwise...).Commit()
}

func tokenRefused(err error) bool {
	return errors.Is(err, rpctypes.ErrInvalidAuthToken) || errors.Is(err, rpctypes.ErrAuthOldRevision) || errors.Is(err, rpctypes.ErrUserEmpty)
}

// authenticate returns the token of the user, an empty one where none is needed.
func (l *link) authenticate(ctx context.Context) (*string, error) {
	if l.user == "" {
		return new(string), nil
	}
	if token := l.token.Load(); token != nil {
		return token, nil
	}
	select {
	case l.login <- struct{}{}:
		defer func() { <-l.login }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if token := l.token.Load(); token != nil { // another call got it
		return token, nil
	}
	token := new(string)
	resp, err := l.etcd.Authenticate(ctx, l.user, l.password)
	if err == nil {
		*token = resp.Token
	} else if !errors.Is(err, rpctypes.ErrAuthNotEnabled) {
		return nil, err
	}
	l.token.Store(token)
	return token, nil
}
