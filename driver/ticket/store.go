package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store   = (*Store)(nil)
	_ segment.Catalog = (*Store)(nil)
)

const (
	defaultTimeout = 2 * time.Second

	// maxDeadlocks is how often a draw is repeated that the server undid because it and
	// another REPLACE waited for each other.
	maxDeadlocks = 5

	// failoverDivisor divides the time-out of a server with an alternative: by default, callers that wait
	// for a second get their ID from the second or the third server. The last server keeps the
	// whole time, so that a slow server does not pass for a dead one.
	failoverDivisor = 5
)

// A Store draws IDs from ticket servers. It is a [segment.Store] and a
// [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct {
	members []*member
	layout  Layout
	logger  *slog.Logger
	timeout time.Duration
	turn    atomic.Uint64

	ctx    context.Context // of the looks at servers that failed
	cancel context.CancelFunc
	probes sync.WaitGroup
	mu     sync.Mutex // guards the health of all members, and their admission
}

// Close is [DB.Close].
func (s *Store) Close() error {
	s.mu.Lock()
	s.cancel() // under the lock, so that no server is looked at afterwards
	s.mu.Unlock()
	s.probes.Wait()
	return nil
}

// Exists reports whether any of the servers is part of a set.
func (s *Store) Exists(ctx context.Context) (bool, error) {
	for _, m := range s.members {
		var f facts
		err := f.read(ctx, m.DB)
		if err != nil || f.state != "" && f.state != stateNew {
			return err == nil, wrap(m.wrapErr(err), "look for the ticket store")
		}
	}
	return false, nil
}

func (s *Store) usable(ctx context.Context) error {
	if s.ctx.Err() != nil {
		return leaf.ErrClosed
	}
	return ctx.Err()
}

// Advance draws up to n IDs of a tag, or up to its step if n is 0, from one server:
// one ID where the servers deal single tickets, at most the rest of a block where they
// deal in blocks. [segment.Grant].Source is the server's number in its set.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := s.advance(ctx, tag, n)
	return grant, wrap(err, "advance %q", tag)
}

func (s *Store) advance(ctx context.Context, tag string, n int64) (grant segment.Grant, err error) {
	if n < 0 {
		return segment.Grant{}, fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
	}
	if err := segment.CheckKnown(tag); err != nil {
		return segment.Grant{}, err
	}
	var refusal error // of a server that answered: the tag is unknown, or its IDs are used up
	err = s.visit(ctx, func(m *member, hasty bool) (done bool, err error) {
		grant, err = s.draw(ctx, m, tag, n, hasty)
		told := explain(err)
		switch {
		case err == nil:
			s.succeeded(m)
			refusal = nil
			return true, nil
		case errors.Is(told, leaf.ErrUnknownTag):
			refusal = told
			return false, nil
		case errors.Is(told, leaf.ErrOverflow):
			refusal = cmp.Or(refusal, told)
			return false, nil
		}
		return false, err
	})
	return grant, cmp.Or(err, refusal)
}

// draw draws from one server, in its turn.
func (s *Store) draw(ctx context.Context, m *member, tag string, n int64, hasty bool) (grant segment.Grant, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if s.layout.Stride == 0 {
		table := s.layout.table(tag)
		if err := m.gate(table).Take(ctx); err != nil {
			return segment.Grant{}, fmt.Errorf("%w from %s: %v", errQueued, table, err) // no cause: the server was not asked
		}
		defer m.gate(table).Free()
	}
	turn := time.Now()
	if hasty && m.facts.Load() != nil {
		if s.isDown(m) {
			return segment.Grant{}, errLeftOut
		}
		ctx, cancel = context.WithTimeout(ctx, s.timeout/failoverDivisor)
		defer cancel()
	}
	for range 1 + maxDeadlocks {
		err = s.use(ctx, m, func(conn *sql.Conn, f *facts) (err error) {
			grant, err = f.draw(ctx, conn, tag, n)
			return err
		})
		if !mysqlconn.IsNumber(err, mysqlconn.Deadlock, mysqlconn.NoAutoInc) {
			break
		}
	}
	if errors.Is(err, context.DeadlineExceeded) && time.Since(turn) < s.timeout/failoverDivisor {
		err = fmt.Errorf("%w: %v", errQueued, err)
	}
	return grant, err
}

// use runs do on a connection of one server. It first checks an unknown server, and discards an
// unfit connection.
func (s *Store) use(ctx context.Context, m *member, do func(*sql.Conn, *facts) error) error {
	conn, err := m.DB.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	f := m.facts.Load()
	if f == nil {
		f, err = s.inspect(ctx, conn, m)
	}
	if err == nil {
		err = do(conn, f)
	}
	switch {
	case errors.Is(err, errResized):
		m.facts.CompareAndSwap(f, nil)
	case errors.Is(err, sqlstore.ErrSession):
		sqlstore.Discard(conn)
	}
	return err
}

// inspect checks a server and learns its properties.
func (s *Store) inspect(ctx context.Context, conn *sql.Conn, m *member) (*facts, error) {
	f := &facts{}
	err := f.checkServer(ctx, conn)
	if err == nil {
		err = f.fits(s.layout, int64(len(s.members)))
	}
	if err == nil {
		err = f.checkTables(ctx, conn)
	}
	if err == nil {
		err = s.admit(m, f)
	}
	if err != nil {
		return nil, err
	}
	s.logger.Info("ticket server ready", "server", m.Name, "number", f.number, "of", f.servers,
		"layout", f.Layout.String(), "generation", f.generation)
	f.sync.Warn(s.logger, "IDs that were issued", "server", m.Name)
	return f, nil
}
