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

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// A mysqlPool gives out connections to a server and a table that were found fit.
type mysqlPool struct {
	db     *sql.DB
	table  table
	logger *slog.Logger
	checks []mysqlCheck
	facts  atomic.Pointer[mysqlFacts] // nil until the server and its table were found fit
}

// A mysqlCheck reports why a server, a table or a session must not be used, and
// learns what they are like.
type mysqlCheck func(context.Context, *sql.Conn, *mysqlFacts) error

// newMySQLPool returns a pool; the checks are those of the table's columns.
func newMySQLPool(db *sql.DB, t table, logger *slog.Logger, columns ...mysqlCheck) *mysqlPool {
	d := &mysqlPool{db: db, table: t, logger: logger}
	d.checks = append([]mysqlCheck{checkSession, checkServer, d.checkReadable, d.checkEngine}, columns...)
	return d
}

// mysqlFacts is what a store needs to know of its server and table.
type mysqlFacts struct {
	stay        *mysqlStay // which server this holds for; nil: the only one
	description bool       // there is a column for it
	galera      bool       // the server replicates by Galera: what it shows may lag
	agreed      bool       // commits are agreed upon with other servers: none is lost in a fail-over
	flush       string     // innodb_flush_log_at_trx_commit
	replicated  bool       // there is a binary log, so that another server may have replicas of what this one commits
	engine      string     // of the table
	open        string     // an expression that says whether a transaction is open
	advance     string     // mysqlAdvance as this server understands it
}

// inspect runs all checks.
func (d *mysqlPool) inspect(ctx context.Context, conn *sql.Conn) (*mysqlFacts, error) {
	var facts mysqlFacts
	for _, check := range d.checks {
		if err := check(ctx, conn, &facts); err != nil {
			return nil, err
		}
	}
	d.logger.Info("mysql "+d.table.Use+" ready", "table", d.table.Name, "commits_agreed", facts.agreed)
	if facts.flush != "1" {
		d.logger.Warn("a power cut may take back "+d.table.Stake+": set innodb_flush_log_at_trx_commit=1 on the server",
			"innodb_flush_log_at_trx_commit", facts.flush)
	}
	return &facts, nil
}

// use runs do on one connection, after a look at the server where that is due.
func (d *mysqlPool) use(ctx context.Context, do func(*sql.Conn, *mysqlFacts) error) error {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	start := time.Now()
	stay, err := stayOf(conn)
	facts := d.facts.Load()
	if err == nil && (facts == nil || facts.stay != stay) {
		if facts, err = d.inspect(ctx, conn); err == nil {
			facts.stay = stay
			d.facts.Store(facts)
		}
	}
	if err == nil {
		err = do(conn, facts)
	}
	if failsMySQL(err) && !sqlstore.Hurried(err, start) {
		stay.end(err)
		err = stay.named(err)
	}
	if errors.Is(err, sqlstore.ErrSession) {
		d.logger.Warn("mysql session given up", "err", err)
		sqlstore.Discard(conn)
	}
	return err
}

func checkSession(ctx context.Context, conn *sql.Conn, _ *mysqlFacts) error {
	var a mysqlAnswer
	var charset string
	err := conn.QueryRowContext(ctx, `SELECT ?, @@autocommit, FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode) > 0, @@character_set_client; SELECT 1`, 1).
		Scan(&a.rows, &a.autocommit, &a.strict, &charset)
	switch {
	case isMySQL(err, mysqlSyntax):
		return fmt.Errorf("%w: open the database by mysql.OpenDB, or with multiStatements and interpolateParams: %w", sqlstore.ErrSession, err)
	case err != nil:
		return err
	case !strings.EqualFold(charset, "utf8mb4"):
		return fmt.Errorf("%w: its character set is %s: open the database with charset=utf8mb4", sqlstore.ErrSession, charset)
	}
	return a.session()
}

func (d *mysqlPool) checkReadable(ctx context.Context, conn *sql.Conn, _ *mysqlFacts) error {
	rows, err := conn.QueryContext(ctx, `SELECT `+d.table.Columns+` FROM `+d.table.Name+` LIMIT 0`)
	if err != nil {
		return err
	}
	return rows.Close()
}

func (d *mysqlPool) checkEngine(ctx context.Context, conn *sql.Conn, facts *mysqlFacts) error {
	var kind string
	var engine, transactions sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT t.table_type, t.engine, e.transactions
		FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
		WHERE t.table_schema = DATABASE() AND t.table_name = ?`, d.table.Name).Scan(&kind, &engine, &transactions)
	switch {
	case err != nil:
		return err
	case kind != "BASE TABLE":
		return fmt.Errorf("%w: %s is a %s: it must be a table", leaf.ErrUnsupported, d.table.Name, strings.ToLower(kind))
	case transactions.V != "YES":
		return fmt.Errorf("%w: the table's engine %s has no transactions and loses %s in a crash: ALTER TABLE %s ENGINE=InnoDB",
			leaf.ErrUnsupported, engine.V, d.table.Stake, d.table.Name)
	}
	facts.engine = engine.V
	return nil
}
