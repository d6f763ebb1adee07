package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

const mysqlWorkers = `CREATE TABLE leaf_worker (
	worker      BIGINT NOT NULL,
	record      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	PRIMARY KEY (worker)
) ENGINE=InnoDB`

// NewRegistry returns a registry in the MySQL or MariaDB database db, opened as
// the package documentation says; a store may use it too. It does not connect: what
// is wrong with the server, the table or the session shows at the first call, and
// each call looks anew until all is well.
func NewRegistry(db *sql.DB, opts *Options) (*Registry, error) {
	if db == nil {
		return nil, fmt.Errorf("open mysql registry: %w: no database", leaf.ErrInvalid)
	}
	pool := newMySQLPool(db, workerTable(), opts.logger(), checkWorkerColumns)
	return sqlstore.NewRegistry(&mysqlRegistry{pool}), nil
}

// InitRegistry creates the table leaf_worker in db. Where there is one it fails
// with an error that wraps [io/fs.ErrExist].
func InitRegistry(ctx context.Context, db *sql.DB) error {
	if err := createMySQL(ctx, db, workerTable()); err != nil {
		return fmt.Errorf("init mysql registry: %w", explainMySQL(err, workerTable()))
	}
	return nil
}

// ExistsRegistry reports whether db has a table leaf_worker.
func ExistsRegistry(ctx context.Context, db *sql.DB) (bool, error) {
	return existsMySQL(ctx, db, workerTable())
}

// checkWorkerColumns reports why records cannot be kept in the table's columns.
func checkWorkerColumns(ctx context.Context, conn *sql.Conn, _ *mysqlFacts) error {
	var id, record, key sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT MAX(CASE WHEN column_name = 'worker' THEN LOWER(column_type) END),
			MAX(CASE WHEN column_name = 'record' THEN LOWER(data_type) END),
			GROUP_CONCAT(CASE WHEN column_key = 'PRI' THEN LOWER(column_name) END)
		FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'leaf_worker'`).Scan(&id, &record, &key)
	switch {
	case err != nil:
		return err
	case key.V != "worker":
		return fmt.Errorf("%w: worker is not the primary key: ALTER TABLE leaf_worker ADD PRIMARY KEY (worker)", leaf.ErrUnsupported)
	case !strings.HasPrefix(id.V, "bigint"):
		return fmt.Errorf("%w: worker is of type %s: ALTER TABLE leaf_worker MODIFY worker BIGINT NOT NULL", leaf.ErrUnsupported, id.V)
	case record.V != "text" && record.V != "mediumtext" && record.V != "longtext":
		return fmt.Errorf("%w: record is of type %s, which cannot hold every record: "+
			"ALTER TABLE leaf_worker MODIFY record TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL", leaf.ErrUnsupported, record.V)
	}
	return nil
}

// mysqlRegistry has every call use a connection of the pool.
type mysqlRegistry struct{ *mysqlPool }

// mysqlCell asks for the text in a cell and, because a session or a server may have
// changed since it was looked at, for what matters of those. The %s says whether a
// transaction is open.
const mysqlCell = `SELECT @@autocommit, FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode) > 0, %s, @@read_only, w.record
	FROM (SELECT 1) AS one LEFT JOIN leaf_worker AS w ON w.worker = ?`

// galeraSync has a session's reads wait for all that the cluster has agreed upon.
const galeraSync = `SET SESSION wsrep_sync_wait = 1`

// held returns the text in a cell; an ID that no worker has asks for the rest.
func (d *mysqlRegistry) held(ctx context.Context, conn *sql.Conn, facts *mysqlFacts, id int64) (sqlstore.Text, error) {
	if facts.galera {
		if _, err := conn.ExecContext(ctx, galeraSync); err != nil {
			return sqlstore.Text{}, err
		}
	}
	var a mysqlAnswer
	var held sqlstore.Text
	err := conn.QueryRowContext(ctx, fmt.Sprintf(mysqlCell, facts.open), id).
		Scan(&a.autocommit, &a.strict, &a.open, &a.readOnly, &held)
	if err != nil {
		return sqlstore.Text{}, err
	}
	return held, a.session()
}

func (d *mysqlRegistry) Load(ctx context.Context, id int64) (sqlstore.Text, error) {
	var held sqlstore.Text
	err := d.use(ctx, func(conn *sql.Conn, facts *mysqlFacts) (err error) {
		held, err = d.held(ctx, conn, facts, id)
		return err
	})
	return held, err
}

// swap uses one connection from first to last: database/sql sends nothing twice on a
// connection that its caller holds. The statement that writes commits by itself. Where
// the server undid it in favour of others, who may have written to this very cell, the
// cell is read again, and nothing is sent again.
func (d *mysqlRegistry) Swap(ctx context.Context, id int64, text string, replaces func(sqlstore.Text) error) error {
	return d.use(ctx, func(conn *sql.Conn, facts *mysqlFacts) error {
		held, err := d.held(ctx, conn, facts, id)
		if err != nil {
			return err
		}
		if err := replaces(held); err != nil {
			return err
		}
		switch {
		case !held.Valid:
			err = insertCell(ctx, conn, id, text)
		case held.V != text: // else an UPDATE would count no row as changed
			err = updateCell(ctx, conn, id, held.V, text)
		}
		if undoneMySQL(err) {
			if held, lookErr := d.held(ctx, conn, facts, id); lookErr == nil {
				return cmp.Or(replaces(held), err)
			}
		}
		return err
	})
}

func insertCell(ctx context.Context, conn *sql.Conn, id int64, text string) error {
	_, err := conn.ExecContext(ctx, `INSERT INTO leaf_worker (worker, record) VALUES (?, ?)`, id, text)
	if isMySQL(err, mysqlDuplicate) {
		return sqlstore.ErrMoved
	}
	return err
}

// updateCell compares byte for byte, whatever the collation of the column.
func updateCell(ctx context.Context, conn *sql.Conn, id int64, old, text string) error {
	result, err := conn.ExecContext(ctx, `UPDATE leaf_worker SET record = ?
		WHERE worker = ? AND CAST(CONVERT(record USING utf8mb4) AS BINARY) = CAST(? AS BINARY)`, text, id, old)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		return sqlstore.ErrMoved
	}
	return err
}

func (d *mysqlRegistry) List(ctx context.Context) ([]sqlstore.Cell, error) {
	var cells []sqlstore.Cell
	err := d.use(ctx, func(conn *sql.Conn, facts *mysqlFacts) error {
		if _, err := d.held(ctx, conn, facts, noWorker); err != nil {
			return err
		}
		rows, err := conn.QueryContext(ctx, `SELECT worker, record FROM leaf_worker ORDER BY worker`)
		if err == nil {
			cells, err = sqlstore.ScanCells(rows)
		}
		return err
	})
	return cells, err
}

const noWorker = -1

// clock asks for a time that the session's time zone has no part in.
func (d *mysqlRegistry) Clock(ctx context.Context) (time.Time, error) {
	var micros int64
	err := d.use(ctx, func(conn *sql.Conn, _ *mysqlFacts) error {
		return conn.QueryRowContext(ctx, `SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', UTC_TIMESTAMP(6))`).Scan(&micros)
	})
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMicro(micros), nil
}

// forgetful looks anew: servers change places, and their settings change.
func (d *mysqlRegistry) Forgetful(ctx context.Context) (bool, error) {
	var forgets bool
	err := d.use(ctx, func(conn *sql.Conn, _ *mysqlFacts) error {
		var now mysqlFacts
		if err := checkServer(ctx, conn, &now); err != nil {
			return err
		}
		if err := d.checkEngine(ctx, conn, &now); err != nil {
			return err
		}
		forgets = now.forgets()
		return nil
	})
	return forgets, err
}

// forgets reports whether a commit may be lost: with the power, or because another
// server that lacks it takes over.
func (f *mysqlFacts) forgets() bool {
	return !f.agreed && (f.replicated || f.flush != "1" || f.engine != "InnoDB")
}

func (d *mysqlRegistry) Explain(err error) error { return explainMySQL(err, workerTable()) }

func (d *mysqlRegistry) Close() error { return nil }
