package leafconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf"
)

// isFault reports an error after which another server should be asked: this one cannot be
// reached, or has nothing for the moment.
func isFault(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	coded, ok := errors.AsType[*connect.Error](err)
	return !ok || !connect.IsWireError(err) || coded.Code() == connect.CodeUnavailable
}

// once makes a call that must not be repeated, to the server with that name; "": to the
// preferred one.
func once[T any](ctx context.Context, c *Conn, host string, call func(context.Context, *server) (T, error)) (T, error) {
	for _, s := range c.order() {
		if host == "" || s.host == host {
			result, err := call(ctx, s)
			c.answered(s, err)
			return result, explain(ctx, s, err)
		}
	}
	var none T
	return none, fmt.Errorf("server %s: %w: it is none of this client's", host, leaf.ErrInvalid)
}

// An outcome is how a call to one of several servers ended.
type outcome[T any] struct {
	server *server
	result T
	err    error
}

// repeatable makes a call that may be repeated. It asks one server after another until one
// answers, and the next one too while an answer takes long. An answer that comes too late is
// dropped.
func repeatable[T any](ctx context.Context, c *Conn, call func(context.Context, *server) (T, error)) (T, error) {
	servers := c.order()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome[T], len(servers))
	asked, running := 0, 0
	ask := func() {
		s := servers[asked]
		asked++
		running++
		go func() {
			result, err := call(inner, s)
			outcomes <- outcome[T]{s, result, err}
		}()
	}
	hedge := c.hedge()
	for ask(); ; {
		select {
		case o := <-outcomes:
			running--
			c.answered(o.server, o.err)
			more := asked < len(servers)
			if !isFault(o.err) || ctx.Err() != nil || !more && running == 0 {
				return o.result, explain(ctx, o.server, o.err)
			}
			if more {
				ask()
			}
		case <-hedge:
			if asked < len(servers) {
				ask()
				hedge = c.hedge()
			}
		}
	}
}

// hedge tells when another server should be asked.
func (c *Conn) hedge() <-chan time.Time {
	if c.opts.Hedge < 0 || len(c.servers) == 1 {
		return nil
	}
	return time.After(c.opts.Hedge)
}
