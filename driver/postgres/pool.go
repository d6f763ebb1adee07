package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/leaf-id/leaf/internal/sqlstore"
)

// A postgresPool gives out sessions on a server and a table that were found fit.
type postgresPool struct {
	db     *sql.DB
	table  table
	logger *slog.Logger
	facts  atomic.Pointer[postgresFacts] // nil until the server and its table were found fit
}

// postgresTimeout bounds a call: the protocol has no limit on an answer, nor on the
// wait for a row that another transaction holds, that could be set for one statement.
// It is below the time that callers usually allow, who would learn no reason otherwise.
const postgresTimeout = 4 * time.Second

// A postgresSession is a connection, or a transaction on one, as one call uses it.
type postgresSession struct {
	conn  *sql.Conn
	on    postgresQuerier
	facts *postgresFacts
}

type postgresQuerier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// postgresMode has a query prepare nothing that outlives it, in one round trip: a
// pooler may have another session serve the next.
const postgresMode = pgx.QueryExecModeExec

func (s *postgresSession) query(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	return s.on.QueryContext(ctx, query, append([]any{postgresMode}, args...)...)
}

func (s *postgresSession) queryRow(ctx context.Context, query string, args ...any) *sql.Row {
	return s.on.QueryRowContext(ctx, query, append([]any{postgresMode}, args...)...)
}

// changeOne runs a statement that changes one row, and fails with none if it finds
// no row to change.
func (s *postgresSession) changeOne(ctx context.Context, none error, query string, args ...any) error {
	var commits string
	err := s.queryRow(ctx, query+` RETURNING `+s.facts.commits, args...).Scan(&commits)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return none
	case err != nil:
		return err
	}
	return commitFault(commits)
}

// transact runs do in a transaction.
func (s *postgresSession) transact(ctx context.Context, do func(*postgresSession) error) error {
	tx, err := s.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := do(&postgresSession{conn: s.conn, on: tx, facts: s.facts}); err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return err
	}
	return tx.Commit()
}

// use runs do on one connection, after a look at the server where that is due.
// database/sql sends nothing twice on a connection that its caller holds.
func (d *postgresPool) use(ctx context.Context, do func(context.Context, *postgresSession) error) error {
	connector := postgresConnectorOf(d.db)
	start, generation := time.Now(), connector.generation.Load()
	limited, cancel := context.WithTimeout(ctx, postgresTimeout)
	defer cancel()
	err := d.useFor(limited, do)
	if brokenPostgres(err) && !errors.Is(ctx.Err(), context.Canceled) && !sqlstore.Hurried(err, start) {
		connector.generation.CompareAndSwap(generation, generation+1)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case limited.Err() != nil:
		return d.slow(connector.hosts, err)
	case errors.Is(err, context.DeadlineExceeded): // pgx's own, to connect
		return errors.New(explainPostgres(err, d.table).Error()) // no cause: the caller's time is not up
	}
	return err
}

// slow says what it may be that took a call too long. It has no cause: the caller's
// time is not up.
func (d *postgresPool) slow(hosts string, cause error) error {
	from, advice := "", "the server hangs, or another transaction holds the row: end the one left open: "
	if hosts != "" {
		from = " from " + hosts
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](cause); ok {
		advice = "" // there is one for this
	}
	return fmt.Errorf("no answer%s within %v: %s%v", from, postgresTimeout, advice, explainPostgres(cause, d.table))
}

func (d *postgresPool) useFor(ctx context.Context, do func(context.Context, *postgresSession) error) error {
	s, err := openPostgresSession(ctx, d.db)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	if s.facts = d.facts.Load(); s.facts == nil {
		if s.facts, err = d.inspect(ctx, s); err == nil {
			d.facts.Store(s.facts)
		}
	}
	if err == nil {
		err = do(ctx, s)
	}
	if unfitPostgres(err) {
		d.facts.Store(nil)
	}
	if errors.Is(err, sqlstore.ErrSession) {
		d.logger.Warn("postgres session given up", "err", err)
		sqlstore.Discard(s.conn)
	}
	return err
}

// unfitPostgres reports that an error may come of a server or a table that is no
// longer what it was.
func unfitPostgres(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, sqlstore.ErrSession) || ok && len(e.Code) == 5 && strings.Contains("0A 25 42 55", e.Code[:2])
}

// openPostgresSession returns a session whose driver and character set are fit.
func openPostgresSession(ctx context.Context, db *sql.DB) (*postgresSession, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	err = conn.Raw(func(c any) error {
		pg, ok := c.(*stdlib.Conn)
		if !ok {
			return errors.New("the database was opened with another driver: open it with github.com/jackc/pgx/v5/stdlib")
		}
		if charset := pg.Conn().PgConn().ParameterStatus("client_encoding"); charset != "UTF8" {
			return fmt.Errorf("%w: its client_encoding is %s: ALTER ROLE … RESET client_encoding, or remove it from the URL", sqlstore.ErrSession, charset)
		}
		return nil
	})
	if err != nil {
		sqlstore.Discard(conn)
		return nil, err
	}
	return &postgresSession{conn: conn, on: conn}, nil
}
