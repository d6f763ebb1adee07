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
	"github.com/leaf-id/leaf/worker"
)

// A pool hands out sessions on a checked server and table.
type pool struct {
	db     *sql.DB
	table  *table
	logger *slog.Logger
	slots  sqlstore.Slots        // of a store
	facts  atomic.Pointer[facts] // nil until the server and its table were found fit
}

// timeout bounds a call: the protocol has no limit on an answer, nor on the
// wait for a row that another transaction holds, that could be set for one statement.
// It is below the time that callers usually allow, who would learn no reason otherwise.
const timeout = 4 * time.Second

// A session is a connection, or a transaction on one, as one call uses it.
type session struct {
	sqlstore.Session
	conn  *sql.Conn
	facts *facts
}

// micros is update_time in microseconds, which a session's DateStyle and time zone have no part in.
const micros = `(EXTRACT(EPOCH FROM update_time) * 1000000)::bigint`

func newDialect(f *facts) *sqlstore.Dialect {
	names := "text" + byteOrder
	if f.kind == cockroach { // which compares by bytes, and knows no other way to say so
		names = "text"
	}
	now := currentSettings
	if f.kind.agreed() {
		now = ""
	}
	return &sqlstore.Dialect{
		Server: f.server, Settings: now, MayLose: func(text string) bool { return parseSettings(text).mayLose() },
		// A query prepares nothing that outlives it, in one round trip: a pooler may have
		// another session serve the next.
		Bind: func(query string, args []any) (string, []any) {
			return query, append([]any{pgx.QueryExecModeExec}, args...)
		},
		Equal: `%s = %s`, IfAbsent: ` ON CONFLICT (%s) DO NOTHING`, ForUpdate: ` FOR UPDATE`,
		Now: `now()`, Touch: `, update_time = now()`, Later: `GREATEST(now(), update_time) + interval '1 microsecond'`,
		Micros: micros, Description: `COALESCE(description, '')`,
		OptionTable:  `CREATE TABLE IF NOT EXISTS leaf_option (name ` + names + ` PRIMARY KEY, options text NOT NULL)`,
		StrictTable:  `CREATE TABLE IF NOT EXISTS leaf_strict (name ` + names + ` PRIMARY KEY, max_id bigint NOT NULL)`,
		DeletedTable: `CREATE TABLE IF NOT EXISTS leaf_deleted (name ` + names + ` PRIMARY KEY, max_id bigint NOT NULL)`,
		StoreColumns: `(one smallint PRIMARY KEY, identity text NOT NULL)`,
		CountTables:  `SELECT CASE WHEN to_regclass($1) IS NULL THEN 0 ELSE 1 END`,
		Clock:        `(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint`,
		Guard:        f.standby, Check: standbyFault,
		Change: func(s *sqlstore.Session, query string, args ...any) (int64, error) {
			rows, err := s.Query(query+` RETURNING `+f.commits, args...)
			changed, err := sqlstore.Collect(rows, err, func(scan func(...any) error) (struct{}, error) {
				var commits string
				if err := scan(&commits); err != nil {
					return struct{}{}, err
				}
				return struct{}{}, commitFault(commits)
			})
			return int64(len(changed)), err
		},
		Undone: undone,
	}
}

// know has the session speak as its server understands it.
func (s *session) know(f *facts) {
	if f.dialect == nil {
		f.dialect = newDialect(f)
	}
	s.facts, s.Dialect = f, f.dialect
}

// Do runs do on a connection.
func (p *pool) Do(ctx context.Context, do func(*sqlstore.Session) error) error {
	return p.use(ctx, func(s *session) error { return do(&s.Session) })
}

// Transact runs do in a transaction.
func (p *pool) Transact(ctx context.Context, do func(*sqlstore.Session) error) error {
	return p.use(ctx, func(s *session) error {
		return sqlstore.Repeat(s.Context, undone, func() error {
			return s.transact(func(tx *session) error { return do(&tx.Session) })
		})
	})
}

func (s *session) transact(do func(*session) error) error {
	tx, err := s.conn.BeginTx(s.Context, nil)
	if err != nil {
		return err
	}
	in := *s
	in.On = tx
	if err := do(&in); err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return err
	}
	return tx.Commit()
}

// Explain adds a remedy to an error.
func (p *pool) Explain(err error) error { return explain(err, p.table) }

// Close leaves the database to the caller.
func (p *pool) Close() {}

// ServerEpoch checks again: servers change places, and their settings change. Where the server's
// identity is known, that takes one statement, as each server sends it with every extension of its lease.
func (p *pool) ServerEpoch(ctx context.Context) (epoch worker.ServerEpoch, err error) {
	err = p.use(ctx, func(s *session) (err error) {
		now := unknown()
		now.server = s.facts.server
		if now.server == noServer { // as with some kinds, or until the user may read it
			if now, err = inspectServer(s); err != nil {
				return err
			}
		}
		if now.server != noServer {
			epoch.Incarnation, err = now.inspectPlain(s, now.server+` || '/' || `+started)
		}
		epoch.Lossy = now.mayLose()
		return err
	})
	return epoch, err
}

// use runs do on one connection. It first checks an unknown server. database/sql sends nothing
// twice on a connection that its caller holds.
func (p *pool) use(ctx context.Context, do func(*session) error) error {
	connector := connectorOf(p.db)
	start, generation := time.Now(), connector.generation.Load()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := p.run(limited, do)
	if broken(err) && !errors.Is(ctx.Err(), context.Canceled) && !sqlstore.DeadlineTooShort(err, start) {
		connector.generation.CompareAndSwap(generation, generation+1)
	}
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case limited.Err() != nil:
		return p.slow(connector.hosts, err)
	case errors.Is(err, context.DeadlineExceeded): // pgx's own, to connect
		return errors.New(p.Explain(err).Error()) // no cause: the caller's time is not up
	}
	return err
}

// slow says what may have made a call take too long. It has no cause: the caller's time is not up.
func (p *pool) slow(hosts string, cause error) error {
	from, advice := "", "the server hangs, or another transaction holds the row: end the one left open: "
	if hosts != "" {
		from = " from " + hosts
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](cause); ok {
		advice = "" // there is one for this
	}
	return fmt.Errorf("no answer%s within %v: %s%v", from, timeout, advice, p.Explain(cause))
}

func (p *pool) run(ctx context.Context, do func(*session) error) error {
	if err := p.slots.Take(ctx); err != nil {
		return err
	}
	defer p.slots.Free()
	s, err := openSession(ctx, p.db)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	known := p.facts.Load()
	if known == nil {
		if known, err = p.inspect(s); err == nil {
			known.advance = fmt.Sprintf(advance, known.store, known.server, known.commits)
			p.facts.Store(known)
		}
	}
	if err == nil {
		s.know(known)
		err = do(s)
	}
	if unfit(err) {
		p.facts.Store(nil)
	}
	if errors.Is(err, sqlstore.ErrSession) {
		p.logger.Warn("postgres session given up", "err", err)
		sqlstore.Discard(s.conn)
	}
	return err
}

// unfit reports whether a changed server or table may be the reason for an error.
func unfit(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return errors.Is(err, sqlstore.ErrSession) || ok && len(e.Code) == 5 && strings.Contains("0A 25 42 55", e.Code[:2])
}

// openSession returns a session whose driver and character set are fit.
func openSession(ctx context.Context, db *sql.DB) (*session, error) {
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
	return &session{Session: sqlstore.Session{Context: ctx, On: conn, Dialect: firstLook}, conn: conn, facts: unknown()}, nil
}
