package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	format      = "1"             // of the keys, as the markers say
	maxRefusals = 4               // that a call takes before it fails
	refusalWait = 30 * time.Millisecond
)

// Options are the optional settings of a [Store] or [Registry]; nil means all defaults.
type Options struct {
	// Logger gets a line about what the server's settings mean for what is written,
	// at first use and whenever that changes. Default: nothing is logged.
	Logger *slog.Logger
}

func (o *Options) logger() *slog.Logger {
	if o == nil || o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// A client runs scripts on the one server that holds the keys.
type client struct {
	config  Config
	scripts *scripts
	logger  *slog.Logger
	closed  atomic.Bool

	mu    sync.Mutex
	conns *conns // for new calls; guarded by mu

	looking chan struct{} // holds one element while a server is being looked at
	facts   atomic.Pointer[facts]
	said    string // to the log, last; guarded by looking
	seen    *facts // of the server of a cluster that was last found fit; guarded by looking
}

func newClient(config Config, logger *slog.Logger) (*client, error) {
	config = config.complete()
	if err := config.check(); err != nil {
		return nil, err
	}
	c := &client{config: config, scripts: newScripts(), logger: logger, looking: make(chan struct{}, 1)}
	c.conns = c.newConns()
	return c, nil
}

// options has the library send nothing twice: MaxRetries.
func (c *client) options() *goredis.Options {
	network := "tcp"
	if c.config.socket() {
		network = "unix"
	}
	return &goredis.Options{
		Network: network, Addr: c.config.Addrs[0], Username: c.config.Username, Password: c.config.Password, DB: c.config.DB,
		TLSConfig: c.config.TLS, Protocol: 2, DisableIdentity: true,
		MaxRetries: -1, DialTimeout: netTimeout, DialerRetries: 1,
		ReadTimeout: c.readTimeout(), WriteTimeout: netTimeout, ContextTimeoutEnabled: true, PoolSize: maxConns,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
}

func (c *client) failoverOptions() *goredis.FailoverOptions {
	o := c.options()
	return &goredis.FailoverOptions{
		MasterName: c.config.Master, SentinelAddrs: c.config.Addrs,
		SentinelUsername: c.config.SentinelUsername, SentinelPassword: c.config.SentinelPassword,
		Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig, Protocol: o.Protocol,
		DisableIdentity: true, MaxRetries: o.MaxRetries, DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: true, PoolSize: o.PoolSize,
	}
}

func (c *client) clusterOptions() *goredis.ClusterOptions {
	o := c.options()
	return &goredis.ClusterOptions{
		Addrs: c.config.Addrs, MaxRedirects: -1,
		Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, Protocol: o.Protocol,
		DisableIdentity: true, MaxRetries: o.MaxRetries, DialTimeout: o.DialTimeout, DialerRetries: o.DialerRetries,
		ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, ContextTimeoutEnabled: true, PoolSize: o.PoolSize,
		MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
}

// readTimeout leaves the server the time to wait for its replicas.
func (c *client) readTimeout() time.Duration { return netTimeout + 2*c.config.WaitTimeout }

func (c *client) close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns.close()
}

// attempt makes one call, and its error fit for people. It returns when ctx ends,
// which the library below does not notice while it waits for an answer; do may then
// still run, and what it wrote is not known.
func attempt[T any](ctx context.Context, c *client, do func() (T, error)) (T, error) {
	var zero T
	if c.closed.Load() {
		return zero, leaf.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		if r.err == nil {
			return r.value, nil
		}
		err := c.explain(r.err)
		if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
			err = fmt.Errorf("%w: %w", cause, err)
		}
		return zero, err
	case <-ctx.Done():
		return zero, c.explain(ctx.Err())
	}
}

// A command is a script with what it is run on.
type command struct {
	script script
	keys   []string
	args   []any // behind the format and the server
	// confirm has the write wait for what the configuration asks for.
	confirm bool
	// server has the write sent once, and done on no other server; empty: on the one
	// that was looked at.
	server string
}

// An answer is what a script has to say, and which server it ran on.
type answer struct {
	status string
	rest   []string
	facts  *facts
}

// run runs a command on a server that has been looked at. The command is sent again
// only after an answer that says that nothing was done.
func (c *client) run(ctx context.Context, cmd command) (answer, error) {
	for refusals := 1; ; refusals++ {
		a, err := c.runOnce(ctx, cmd)
		if cmd.server != "" {
			return a, err
		}
		elsewhere := err == nil && a.status == answerServer
		if !elsewhere && !c.movedOn(err) {
			if _, known := errors.AsType[goredis.Error](err); err != nil && !known {
				c.refresh(ctx) // the node may be gone
			}
			return a, err
		}
		if refusals == maxRefusals {
			return answer{}, cmp.Or(err, errUnsettled)
		}
		if elsewhere {
			c.facts.CompareAndSwap(a.facts, nil)
			continue
		}
		c.refresh(ctx)
		select {
		case <-time.After(refusalWait):
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
	}
}

var errUnsettled = errors.New("another server has taken over, and answers differ on which: try again")

// movedOn reports whether a server has refused a script because the keys are not, or
// no longer, its own, and another one may be found.
func (c *client) movedOn(err error) bool {
	_, moved := goredis.IsMovedError(err)
	return moved || c.config.Mode == Sentinel && goredis.HasErrorPrefix(err, "READONLY")
}

func (c *client) runOnce(ctx context.Context, cmd command) (a answer, err error) {
	conns, began := c.acquire(), time.Now()
	defer func() { c.release(conns, isSilence(err) && time.Since(began) >= c.patience()) }()
	node, err := conns.primary(ctx, c.config.key(""))
	if err != nil {
		return answer{}, err
	}
	f, err := c.known(ctx, conns, node)
	if err != nil {
		return answer{}, err
	}
	reply, err := c.send(ctx, node, cmd, append([]any{format, cmp.Or(cmd.server, f.replid)}, cmd.args...))
	if err != nil {
		return answer{}, err
	}
	if len(reply) == 0 {
		return answer{}, errors.New("the server's answer is empty")
	}
	return answer{reply[0], reply[1:], f}, nil
}

// send runs the script by its hash, and by its text if the server does not know it.
func (c *client) send(ctx context.Context, node *goredis.Client, cmd command, args []any) ([]string, error) {
	reply, err := c.sendAs(ctx, node, cmd, "evalsha", cmd.script.hash, args)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		return c.sendAs(ctx, node, cmd, "eval", cmd.script.text, args)
	}
	return reply, err
}

func (c *client) sendAs(ctx context.Context, node *goredis.Client, cmd command, verb, text string, args []any) ([]string, error) {
	line := []any{verb, text, len(cmd.keys)}
	for _, key := range cmd.keys {
		line = append(line, key)
	}
	line = append(line, args...)
	if !cmd.confirm || !c.confirms() {
		return node.Do(ctx, line...).StringSlice()
	}
	// One connection for all: the server waits for the writes of the connection.
	pipe := node.Pipeline()
	done := pipe.Do(ctx, line...)
	timeout := c.config.WaitTimeout.Milliseconds()
	var wait, waitAOF *goredis.Cmd
	if c.config.Wait > 0 {
		wait = pipe.Do(ctx, "wait", c.config.Wait, timeout)
	}
	if c.config.WaitLocal+c.config.WaitReplicas > 0 {
		waitAOF = pipe.Do(ctx, "waitaof", c.config.WaitLocal, c.config.WaitReplicas, timeout)
	}
	_, err := pipe.Exec(ctx)
	if unsent(done, err) {
		return nil, err
	}
	reply, err := done.StringSlice()
	if err != nil || len(reply) == 0 || reply[0] != answerOK {
		return reply, err
	}
	return reply, c.confirmed(wait, waitAOF)
}

// unsent reports whether a pipeline failed before its first command had an answer or
// an error of its own.
func unsent(first *goredis.Cmd, err error) bool {
	return err != nil && first.Err() == nil && first.Val() == nil
}

func (c *client) confirms() bool {
	return c.config.Wait+c.config.WaitLocal+c.config.WaitReplicas > 0
}

// confirmed reports why a write does not count although the server has done it.
func (c *client) confirmed(wait, waitAOF *goredis.Cmd) error {
	if wait != nil {
		n, err := wait.Int()
		if err != nil {
			return fmt.Errorf("%w: %w", errUnconfirmed, err)
		}
		if n < c.config.Wait {
			return fmt.Errorf("%w: %d of %d replicas had it within %v", errUnconfirmed, n, c.config.Wait, c.config.WaitTimeout)
		}
	}
	if waitAOF != nil {
		n, err := waitAOF.Int64Slice()
		if err != nil {
			return fmt.Errorf("%w: %w", errUnconfirmed, err)
		}
		if len(n) != 2 || n[0] < int64(c.config.WaitLocal) || n[1] < int64(c.config.WaitReplicas) {
			return fmt.Errorf("%w: on disk at %v (primary, replicas) of %d, %d within %v",
				errUnconfirmed, n, c.config.WaitLocal, c.config.WaitReplicas, c.config.WaitTimeout)
		}
	}
	return nil
}

// errUnconfirmed leaves a write in an unknown state: it was done, and may be lost.
var errUnconfirmed = errors.New("the write was not confirmed: check the replicas, or lower wait and waitaof in the URL")
