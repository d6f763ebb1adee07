package leafconn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/segment"
)

// A rating describes a server after a call.
type rating int

const (
	none     rating = iota // nothing: the caller gave up, or nothing was sent
	healthy                // it has answered, if only with an error
	ignorant               // it does not know the tag: its store may be another one than the others have
	faulty                 // another one should be asked
)

// faults are the codes of a server that cannot serve at present, or does not serve this caller:
// another one may know its token, or have the scheme, already.
var faults = map[connect.Code]bool{
	connect.CodeUnavailable:      true,
	connect.CodeDeadlineExceeded: true,
	connect.CodeInternal:         true,
	connect.CodeUnknown:          true,
	connect.CodeUnimplemented:    true,
	connect.CodeUnauthenticated:  true,
	connect.CodePermissionDenied: true,
}

func judge(err error) rating {
	coded, ok := errors.AsType[*connect.Error](err)
	switch {
	case err == nil:
		return healthy
	case errors.Is(err, hops.ErrLoop), errors.Is(err, segment.ErrForeignStore): // another one may have IDs of its own
		return faulty
	case !ok, errors.Is(err, context.Canceled), errors.Is(err, errCut): // not its code, which a broken pipe has, too
		return none
	case !connect.IsWireError(err), faults[coded.Code()]:
		return faulty
	case coded.Code() == connect.CodeNotFound && reasons[reasonOf(coded)] == leaf.ErrUnknownTag:
		return ignorant
	}
	return healthy
}

// refuse returns why no server may be asked: the connection is closed, or the call came
// through this process already.
func (c *Conn) refuse(ctx context.Context) error {
	var err error
	if c.closed.Load() {
		err = leaf.ErrClosed
	} else if c.opts.Name != "" {
		err = hops.Check(c.opts.Name, hops.From(ctx))
	}
	if err != nil {
		return fmt.Errorf("ask leaf servers: %w", err)
	}
	return nil
}

// once makes a call that must not be repeated, to the server with that name; "": to the
// preferred one.
func once[T any](ctx context.Context, c *Conn, host string, call func(context.Context, *server) (T, error)) (T, error) {
	var none T
	if err := c.refuse(ctx); err != nil {
		return none, err
	}
	for _, s := range c.order() {
		if host == "" || s.host == host {
			result, err := call(ctx, s)
			c.answered(s, err)
			return result, explain(ctx, s, err)
		}
	}
	return none, fmt.Errorf("server %s: %w: it is none of this client's", host, leaf.ErrInvalid)
}

// An outcome is how a call to one of several servers ended.
type outcome[T any] struct {
	server *server
	result T
	err    error
}

// repeatable makes a call that it may repeat. It asks the servers in turn until one answers, and
// the next one already while an answer takes long. It drops late answers. If all fail, the error
// has one line from each.
func repeatable[T any](ctx context.Context, c *Conn, call func(context.Context, *server) (T, error)) (T, error) {
	return inTurn(ctx, c, c.hedge, call)
}

// never has [inTurn] ask one server at a time: a late answer would be a gap among the numbers.
func never() <-chan time.Time { return nil }

// turn is how long a server has, of those asked one at a time: a frozen one leaves time for the next.
const turn = 2 * time.Second

// A tally has the errors of a call that no server has answered yet.
type tally struct {
	failed  failures.List
	away    bool  // one of them is of a server that may have the store
	unknown error // of a server that does not know the tag
	proven  bool  // the known store is that of such a server
}

func (t *tally) add(s *server, told, err error) {
	if judge(told) == ignorant {
		t.unknown, t.proven = err, t.proven || s.proven.Load()
		return
	}
	t.failed = append(t.failed, err)
	t.away = t.away || !errors.Is(told, segment.ErrForeignStore)
}

// err returns the error of the call. A tag is unknown only if a server of the known store said so, or
// if all servers did: the tags of another store say nothing.
func (t *tally) err() error {
	if t.unknown != nil && (t.proven || !t.away) {
		return t.unknown
	}
	return t.failed
}

// inTurn is repeatable where hedging tells when the next server should be asked, too.
func inTurn[T any](ctx context.Context, c *Conn, hedging func() <-chan time.Time, call func(context.Context, *server) (T, error)) (T, error) {
	if err := c.refuse(ctx); err != nil {
		var none T
		return none, err
	}
	servers := c.order()
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	outcomes := make(chan outcome[T], len(servers))
	asked, running := 0, 0
	var all tally
	hedge := hedging()
	ask := func() {
		s := servers[asked]
		asked++
		running++
		limited, end := inner, context.CancelFunc(func() {})
		if hedge == nil && asked < len(servers) {
			limited, end = context.WithTimeout(inner, turn)
		}
		go func() {
			defer end()
			result, err := call(limited, s)
			for errors.Is(err, errCut) {
				result, err = call(limited, s)
			}
			outcomes <- outcome[T]{s, result, err}
		}()
	}
	var settled <-chan time.Time // the known store lacks the tag, and the other servers have had a turn
	for ask(); ; {
		select {
		case <-settled:
			var none T
			return none, all.err()
		case o := <-outcomes:
			running--
			c.answered(o.server, o.err)
			err := explain(ctx, o.server, o.err)
			if judge(o.err) < ignorant || ctx.Err() != nil {
				return o.result, err
			}
			all.add(o.server, o.err, err)
			if all.proven && settled == nil {
				settled = time.After(turn)
			}
			if asked < len(servers) {
				ask()
			} else if running == 0 {
				return o.result, all.err()
			}
		case <-hedge:
			if asked < len(servers) {
				ask()
				hedge = hedging()
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
