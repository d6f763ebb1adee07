package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/leaf-id/leaf"
)

const (
	netTimeout  = 5 * time.Second // to connect, and for each answer
	maxConns    = 16              // per server
	maxRefusals = 4               // that a call takes before it fails
	refusalWait = 30 * time.Millisecond

	// silence is how long a server must have kept a call waiting for its connections to be
	// given up; a call with less time than that tells nothing about them.
	silence = time.Second
)

// conns are the connections to the servers. They are given up together: when an address
// has moved, or a firewall has forgotten what passed through it, all of them have fallen
// silent, and each would cost a call of its own.
type conns struct {
	goredis.UniversalClient
	calls int // under way; guarded by client.mu
}

// connect does not connect yet. The library sends nothing twice: MaxRetries.
func (c Config) connect() goredis.UniversalClient {
	o := &goredis.UniversalOptions{
		Addrs: c.Addrs, MasterName: c.Master, Username: c.Username, Password: c.Password, DB: c.DB, TLSConfig: c.TLS,
		SentinelUsername: c.SentinelUsername, SentinelPassword: c.SentinelPassword,
		Protocol: 2, DisableIdentity: true, MaxRetries: -1, MaxRedirects: -1, DialTimeout: netTimeout, DialerRetries: 1,
		ReadTimeout: netTimeout + 2*c.WaitTimeout, WriteTimeout: netTimeout, ContextTimeoutEnabled: true, PoolSize: maxConns,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	switch c.Mode {
	case Sentinel:
		return goredis.NewFailoverClient(o.Failover())
	case Cluster:
		return goredis.NewClusterClient(o.Cluster())
	}
	return goredis.NewClient(o.Simple())
}

// primary returns the server that holds a key.
func (s *conns) primary(ctx context.Context, key string) (*goredis.Client, error) {
	if cluster, ok := s.UniversalClient.(*goredis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return s.UniversalClient.(*goredis.Client), nil
}

// A client runs scripts on the one server that holds the keys.
type client struct {
	config Config
	logger *slog.Logger
	closed atomic.Bool

	mu    sync.Mutex
	conns *conns // for new calls; guarded by mu

	facts   atomic.Pointer[facts]
	reading sync.Mutex // held while a server is being looked at
	said    string     // to the log, last; guarded by reading
	seen    *facts     // the last fit server of a cluster; guarded by reading
}

func newClient(config Config, logger *slog.Logger) (*client, error) {
	config, err := config.complete()
	if err != nil {
		return nil, err
	}
	c := &client{config: config, logger: logger, conns: &conns{UniversalClient: config.Client}}
	if config.Client == nil {
		c.conns.UniversalClient = config.connect()
	}
	return c, nil
}

func (c *client) close() error {
	if c.closed.Swap(true) || c.config.Client != nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns.Close()
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
	if silent && s == c.conns && c.config.Client == nil && !c.closed.Load() {
		c.conns = &conns{UniversalClient: c.config.connect()}
	}
	if s != c.conns && s.calls == 0 {
		_ = s.Close() // the error tells nothing
	}
}

// A command is a script with its keys and arguments.
type command struct {
	script  *goredis.Script
	keys    []string
	args    []any // behind the server
	confirm bool  // the write waits for the configured replicas

	// server: the client sends the write once, and only this server executes it; empty: the
	// server of the last check.
	server string
}

// An answer is the result of a script, and the server that ran it.
type answer struct {
	values []string
	facts  *facts
}

// run runs a command. It returns at the end of ctx, which the library ignores while it waits for an
// answer. The command may still write after that.
func (c *client) run(ctx context.Context, cmd command) (answer, error) {
	if c.closed.Load() {
		return answer{}, leaf.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	type result struct {
		answer answer
		err    error
	}
	done := make(chan result, 1)
	go func() {
		a, err := c.runAnywhere(ctx, cmd)
		done <- result{a, err}
	}()
	select {
	case r := <-done:
		if r.err == nil {
			return r.answer, nil
		}
		err := c.explain(r.err)
		if gone := ctx.Err(); gone != nil && !errors.Is(err, gone) {
			err = fmt.Errorf("%w: %w", gone, err)
		}
		return answer{}, err
	case <-ctx.Done():
		return answer{}, c.explain(ctx.Err())
	}
}

// runAnywhere runs a command on whichever server has the keys. It sends it again only
// after an answer that says that nothing was done.
func (c *client) runAnywhere(ctx context.Context, cmd command) (a answer, err error) {
	for range maxRefusals {
		a, err = c.runOnce(ctx, cmd)
		_, answered := errors.AsType[goredis.Error](err)
		_, moved := goredis.IsMovedError(err)
		switch {
		case err == nil || cmd.server != "":
			return a, err
		case goredis.HasErrorPrefix(err, codeServer):
			c.facts.CompareAndSwap(a.facts, nil)
			continue
		case !answered || moved:
			c.reload(ctx) // the node may be gone, or has handed over
		}
		if !moved && (c.config.Mode != Sentinel || !goredis.HasErrorPrefix(err, "READONLY")) {
			return a, err
		}
		select {
		case <-time.After(refusalWait):
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
	return a, err
}

func (c *client) runOnce(ctx context.Context, cmd command) (a answer, err error) {
	conns, began := c.acquire(), time.Now()
	defer func() { c.release(conns, isSilence(err) && time.Since(began) >= c.config.failoverTimeout()) }()
	node, err := conns.primary(ctx, c.config.key(""))
	if err != nil {
		return answer{}, err
	}
	f, err := c.known(ctx, conns, node)
	if err == nil {
		err = ctx.Err() // its caller may have left
	}
	if err != nil {
		return answer{}, err
	}
	args := append([]any{cmp.Or(cmd.server, f.replid)}, cmd.args...)
	values, err := c.send(ctx, node, cmd, args, cmd.script.EvalSha)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		values, err = c.send(ctx, node, cmd, args, cmd.script.Eval)
	}
	return answer{values, f}, err
}

// reload looks up the nodes of a cluster again; a sentinel gives the address for each connection.
func (c *client) reload(ctx context.Context) {
	conns := c.acquire()
	defer c.release(conns, false)
	if cluster, ok := conns.UniversalClient.(*goredis.ClusterClient); ok {
		cluster.ReloadState(ctx)
	}
}

type evaluate func(context.Context, goredis.Scripter, []string, ...any) *goredis.Cmd

// send sends a script once, and waits for its write to be confirmed on the same
// connection: the server waits for the writes of the connection.
func (c *client) send(ctx context.Context, node *goredis.Client, cmd command, args []any, eval evaluate) ([]string, error) {
	waits := c.config.waits()
	if !cmd.confirm || len(waits) == 0 {
		return eval(ctx, node, cmd.keys, args...).StringSlice()
	}
	pipe := node.Pipeline()
	done := eval(ctx, pipe, cmd.keys, args...)
	var confirmed []*goredis.Cmd
	for _, w := range waits {
		confirmed = append(confirmed, pipe.Do(ctx, w.command...))
	}
	if _, err := pipe.Exec(ctx); err != nil && done.Err() == nil && done.Val() == nil {
		return nil, err // the pipeline failed before the script had an answer
	}
	values, err := done.StringSlice()
	for i := 0; i < len(waits) && err == nil; i++ {
		err = waits[i].check(confirmed[i])
	}
	return values, err
}

// A wait is a command that waits for other servers to have a write, and its expected result.
type wait struct {
	command []any
	want    []int64
}

func (c Config) waits() (waits []wait) {
	timeout := c.WaitTimeout.Milliseconds()
	if c.Wait > 0 {
		waits = append(waits, wait{[]any{"wait", c.Wait, timeout}, []int64{int64(c.Wait)}})
	}
	if c.WaitLocal+c.WaitReplicas > 0 {
		waits = append(waits, wait{[]any{"waitaof", c.WaitLocal, c.WaitReplicas, timeout}, []int64{int64(c.WaitLocal), int64(c.WaitReplicas)}})
	}
	return waits
}

// check reports why a write does not count although the server has done it.
func (w wait) check(cmd *goredis.Cmd) error {
	var got []int64
	n, err := cmd.Int64()
	if got = []int64{n}; len(w.want) > 1 {
		got, err = cmd.Int64Slice()
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnconfirmed, err)
	}
	for i, want := range w.want {
		if i >= len(got) || got[i] < want {
			return fmt.Errorf("%w: %v says %v", errUnconfirmed, w.command, got)
		}
	}
	return nil
}

// errUnconfirmed leaves a write in an unknown state: it was done, and may be lost.
var errUnconfirmed = errors.New("the write was not confirmed: check the replicas, or lower wait and waitaof")

// failoverTimeout is how long a call may take although the connections are in order.
func (c Config) failoverTimeout() time.Duration {
	if len(c.waits()) > 0 {
		return silence + 2*c.WaitTimeout
	}
	return silence
}

// isSilence reports whether an answer did not come, on a connection that stood.
func isSilence(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "read" && op.Timeout()
}
