package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/worker"
)

// A pool hands out connections to a checked server and table.
type pool struct {
	db     *sql.DB
	table  *table
	logger *slog.Logger
	slots  sqlstore.Slots        // of a store
	facts  atomic.Pointer[facts] // nil until the server and its table were found fit
}

// A session is a connection as one call uses it.
type session struct {
	sqlstore.Session
	conn  *sql.Conn
	facts *facts
}

// facts are the properties of a server and a table that a session needs.
type facts struct {
	host       *activeHost // which server this holds for; nil: the only one
	galera     bool        // the server replicates by Galera: its reads may lag
	agreed     bool        // servers agree on commits: a fail-over loses no commit
	sync       mysqlconn.Sync
	several    bool   // the URL names several servers, for replicas of each other
	replicated bool   // the server has a binary log, so another one may replicate its commits
	engine     string // of the table
	name       string // of the server
	status     string // the table of the server's status

	dialect sqlstore.Dialect
	advance string // the statement that moves a counter
}

// mayLose reports whether a commit may be lost: with the power, or because another
// server that lacks it takes over.
func (f *facts) mayLose() bool {
	return !f.agreed && (f.several || f.replicated || !f.sync.Flushed() || f.engine != "InnoDB")
}

// settings are what mayLoseNow reads.
const settings = `CONCAT_WS(' ', @@log_bin, @@innodb_flush_log_at_trx_commit)`

// mayLoseNow is mayLose with the present settings: a restart changes one, a statement the other.
func (f *facts) mayLoseNow(settings string) bool {
	now := *f
	binlog, flush, _ := strings.Cut(settings, " ")
	now.replicated, now.sync = mysqlconn.IsOn(binlog), mysqlconn.Sync{Flush: flush}
	return now.mayLose()
}

// guardFormat reads the properties of the session and its server for checkGuard. The %s is whether
// a transaction is open.
const guardFormat = `CONCAT_WS(' ', @@autocommit, FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode) > 0, %s, @@read_only, @@completion_type)`

// checkGuard reports that the session, or its server, must not be used.
func checkGuard(guard string) error {
	settings := strings.Fields(guard)
	if len(settings) != 5 {
		return fmt.Errorf("the settings of the session are %q, which has not five parts", guard)
	}
	autocommit, strict, open, readOnly, completion := settings[0], settings[1], settings[2], settings[3], settings[4]
	switch {
	case mysqlconn.IsOn(readOnly):
		return mysqlconn.ReadOnly("read_only", readOnly)
	case !mysqlconn.IsOn(autocommit):
		return fmt.Errorf("%w: autocommit is off: open the database with autocommit=1", sqlstore.ErrSession)
	case !mysqlconn.IsOn(strict):
		return fmt.Errorf("%w: sql_mode lacks STRICT_ALL_TABLES: open the database with it", sqlstore.ErrSession)
	case completion != "NO_CHAIN": // CHAIN begins a transaction behind each commit, and the next UPDATE falls into it
		return fmt.Errorf("%w: completion_type is %s: open the database with completion_type=0", sqlstore.ErrSession, completion)
	case mysqlconn.IsOn(open):
		return fmt.Errorf("%w: a transaction was left open on it: give Leaf a pool of its own", sqlstore.ErrSession)
	}
	return nil
}

// noIdentity is the expression for a store without an identity.
const noIdentity = `''`

func newFacts(open string) *facts {
	guard := fmt.Sprintf(guardFormat, open)
	return &facts{advance: advanceStatement(guard, noIdentity), dialect: sqlstore.Dialect{
		Bind: sqlstore.Positional, Equal: exact, ForUpdate: ` FOR UPDATE`,
		Now: `CURRENT_TIMESTAMP`, Micros: micros,
		Later:        `FROM_UNIXTIME(GREATEST(UNIX_TIMESTAMP(), UNIX_TIMESTAMP(update_time)) + 1)`,
		OptionTable:  `CREATE TABLE IF NOT EXISTS leaf_option (name VARBINARY(512) NOT NULL PRIMARY KEY, options TEXT CHARACTER SET utf8mb4 NOT NULL) ENGINE=InnoDB`,
		StrictTable:  `CREATE TABLE IF NOT EXISTS leaf_strict (name VARBINARY(512) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL) ENGINE=InnoDB`,
		DeletedTable: `CREATE TABLE IF NOT EXISTS leaf_deleted (name VARBINARY(512) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL) ENGINE=InnoDB`,
		StoreColumns: `(one TINYINT NOT NULL PRIMARY KEY, identity VARCHAR(64) CHARACTER SET ascii NOT NULL) ENGINE=InnoDB`,
		Mark:         `INSERT IGNORE INTO leaf_store (one, identity) VALUES ($1, $2)`, Has: hasTable,
		// The session's time zone has no part in it.
		Clock: `TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))`,
		Guard: guard, Check: checkGuard, Guarded: true, Undone: undone,
	}}
}

// hasTable reads from the table. The server refuses a user without rights on it whether it exists or
// not; a mark in leaf_store then decides. Releases without marks read the first row alone.
func hasTable(s *sqlstore.Session, table string) (bool, error) {
	var none int
	refused := s.QueryRow(`SELECT 1 FROM ` + table + ` LIMIT 0`).Scan(&none)
	switch {
	case errors.Is(refused, sql.ErrNoRows):
		return true, nil
	case !mysqlconn.IsNumber(refused, mysqlconn.TableDenied):
		return false, ifNot(refused, mysqlconn.NoTable)
	}
	err := s.QueryRow(`SELECT 1 FROM leaf_store WHERE one > 1 AND identity = $1`, table).Scan(&none)
	if err == nil {
		return false, refused
	}
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return false, ifNot(err, mysqlconn.NoTable, mysqlconn.TableDenied)
}

// ifNot returns err unless it has one of these numbers.
func ifNot(err error, numbers ...uint16) error {
	if mysqlconn.IsNumber(err, numbers...) {
		return nil
	}
	return err
}

// Do runs do on a connection. Reads of records wait for all that a Galera cluster has agreed upon.
func (p *pool) Do(ctx context.Context, do func(*sqlstore.Session) error) error {
	return p.use(ctx, func(s *session) error {
		if s.facts.galera && p.table != &allocTable {
			if _, err := s.On.ExecContext(ctx, galeraSync); err != nil {
				return err
			}
			// A store that uses the connection next does without: an Advance would wait twice.
			defer func() { _, _ = s.On.ExecContext(ctx, galeraAsync) }()
		}
		return do(&s.Session)
	})
}

const (
	galeraSync  = `SET SESSION wsrep_sync_wait = 1`
	galeraAsync = `SET SESSION wsrep_sync_wait = DEFAULT`
)

// Transact runs do in a transaction.
func (p *pool) Transact(ctx context.Context, do func(*sqlstore.Session) error) error {
	return sqlstore.Repeat(ctx, undone, func() error { return p.write(ctx, "", do) })
}

// write runs do in a transaction on one connection, which must be to the given server unless that
// is empty. It repeats nothing.
func (p *pool) write(ctx context.Context, server string, do func(*sqlstore.Session) error) error {
	return p.use(ctx, func(s *session) error {
		tx, err := s.conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		in := s.Session
		in.On = tx
		if err = do(&in); err == nil {
			err = mayCommit(&in, server)
		}
		if err != nil {
			_ = tx.Rollback() // the first error is the one to tell
			return err
		}
		return tx.Commit()
	})
}

// mayCommit checks the server in a statement of its own: a writing statement with server variables
// would have another effect on a replica.
func mayCommit(s *sqlstore.Session, server string) error {
	var readOnly, current string
	if err := s.QueryRow(`SELECT @@read_only, @@server_id`).Scan(&readOnly, &current); err != nil {
		return err
	}
	switch {
	case mysqlconn.IsOn(readOnly):
		return mysqlconn.ReadOnly("read_only", readOnly)
	case server != "" && server != current:
		return fmt.Errorf("the range is of server %s and this is %s: it stays unused", server, current)
	}
	return nil
}

// Explain adds a remedy to an error.
func (p *pool) Explain(err error) error { return explain(err, p.table) }

// Close leaves the database to the caller.
func (p *pool) Close() {}

// ServerEpoch checks again: servers change places, and their settings change.
func (p *pool) ServerEpoch(ctx context.Context) (epoch worker.ServerEpoch, err error) {
	err = p.use(ctx, func(s *session) error {
		now, err := inspectServer(ctx, s.conn)
		if err == nil {
			now.engine, err = mysqlconn.CheckEngine(ctx, s.On, p.table.Name, p.table.Stake)
		}
		if err == nil {
			epoch, err = now.epoch(ctx, s.conn)
		}
		return err
	})
	return epoch, err
}

// use runs do on one connection. It first checks an unknown server. database/sql sends nothing
// twice on a connection that its caller holds.
func (p *pool) use(ctx context.Context, do func(*session) error) error {
	if err := p.slots.Take(ctx); err != nil {
		return err
	}
	defer p.slots.Free()
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	start := time.Now()
	host, err := hostOf(conn)
	known := p.facts.Load()
	if err == nil && (known == nil || known.host != host) {
		if known, err = p.inspect(ctx, conn); err == nil {
			known.host = host
			p.facts.Store(known)
		}
	}
	if err == nil {
		err = do(newSession(ctx, conn, known))
	}
	if mysqlconn.IsNumber(err, mysqlconn.NoTable) {
		p.facts.Store(nil) // leaf_store may be gone
	}
	if serverFailed(err) && !sqlstore.DeadlineTooShort(err, start) {
		host.end(err)
		err = host.named(err)
	}
	if errors.Is(err, sqlstore.ErrSession) {
		p.logger.Warn("mysql session given up", "err", err)
		sqlstore.Discard(conn)
	}
	return err
}

func newSession(ctx context.Context, conn *sql.Conn, f *facts) *session {
	return &session{Session: sqlstore.Session{Context: ctx, On: conn, Dialect: &f.dialect}, conn: conn, facts: f}
}

// inspect refuses an unfit session, server or table, and learns their properties.
func (p *pool) inspect(ctx context.Context, conn *sql.Conn) (*facts, error) {
	known, err := openable(ctx, conn)
	if err != nil {
		return nil, err
	}
	s := newSession(ctx, conn, known)
	if err := checkTable(s, known, p.table); err != nil {
		return nil, err
	}
	if !known.agreed {
		known.dialect.Server = `CAST(@@server_id AS CHAR)`
		known.dialect.Settings, known.dialect.MayLose = settings, known.mayLoseNow
	}
	if p.table.Identified {
		if err := p.identify(s); err != nil {
			return nil, err
		}
	}
	p.logger.Info("mysql "+p.table.Use+" ready", "table", p.table.Name, "commits_agreed", known.agreed)
	known.sync.Warn(p.logger, p.table.Stake)
	if err := known.dialect.Unversioned; err != nil {
		p.logger.Warn("each stop will lose unused IDs", "err", err)
	}
	return known, nil
}

// identify has the statement that grants read the identity of the store.
func (p *pool) identify(s *session) error {
	refused, err := s.Identify(s.CreateIdentity)
	switch {
	case err != nil:
		return err
	case refused != nil:
		p.logger.Warn(sqlstore.NoIdentity+"GRANT CREATE, SELECT, INSERT to the user", "err", refused)
	default:
		s.facts.advance = advanceStatement(s.Guard, s.ReadIdentity())
	}
	return nil
}

// openable reports why the session or the server must not be used.
func openable(ctx context.Context, conn *sql.Conn) (*facts, error) {
	if err := checkSession(ctx, conn); err != nil {
		return nil, err
	}
	return inspectServer(ctx, conn)
}

func checkSession(ctx context.Context, conn *sql.Conn) error {
	var guard string
	if err := mysqlconn.CheckSession(ctx, conn, `, `+fmt.Sprintf(guardFormat, "0"), &guard); err != nil {
		return err
	}
	return checkGuard(guard)
}
