package sqldb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// AUTOINCREMENT has SQLite remember the highest ID ever: one is not used again, even
// where its row was deleted. The times are UTC.
const sqliteNodeTable = `CREATE TABLE WORKER_NODE (
	ID          INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
	HOST_NAME   TEXT    NOT NULL,
	PORT        TEXT    NOT NULL,
	TYPE        INTEGER NOT NULL,
	LAUNCH_DATE TEXT    NOT NULL,
	MODIFIED    TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP,
	CREATED     TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
) STRICT`

// OpenSQLiteNodes returns the worker IDs that the SQLite database db deals, which
// [InitSQLiteNodes] has prepared. It does not touch the database. What
// [OpenSQLiteRegistry] says of the connections holds here too.
func OpenSQLiteNodes(db *sql.DB, opts *NodesOptions) (*Nodes, error) {
	if db == nil {
		return nil, fmt.Errorf("open sqlite nodes: %w: no database", leaf.ErrInvalid)
	}
	opts = opts.orNone()
	db.SetMaxIdleConns(0)
	return newNodes(&sqliteNodes{sqliteRegistry{newWriter(db, opts.file(), nodeTable(), opts.logger())}}, opts), nil
}

// InitSQLiteNodes creates the table WORKER_NODE in db, which is empty or Leaf's. It
// fails with an error that wraps [io/fs.ErrExist] where there is one.
func InitSQLiteNodes(ctx context.Context, db *sql.DB) error {
	if err := initSQLite(ctx, db, nodeTable(), nil); err != nil {
		return fmt.Errorf("init sqlite nodes: %w", explainSQLite(err, "", nodeTable()))
	}
	return nil
}

// ExistsSQLiteNodes reports whether db has a table WORKER_NODE of Leaf's.
func ExistsSQLiteNodes(ctx context.Context, db *sql.DB) (bool, error) {
	return existsSQLite(ctx, db, nodeTable())
}

// sqliteNodes has every call run by its writer.
type sqliteNodes struct{ sqliteRegistry }

func (d *sqliteNodes) insert(ctx context.Context, n Node, date string) (int64, error) {
	var id int64
	err := d.writer.do(ctx, func(s *session) error {
		return s.conn.QueryRowContext(s.ctx, `INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE)
			VALUES (?, ?, ?, ?) RETURNING ID`, n.Host, n.Port, n.kind(), date).Scan(&id)
	})
	if err != nil {
		return 0, err // not the ID: the writer may still be filling it
	}
	return id, nil
}

func (d *sqliteNodes) latest(ctx context.Context, count int) ([]worker.Start, error) {
	var starts []worker.Start
	err := d.writer.do(ctx, func(s *session) error {
		rows, err := s.conn.QueryContext(s.ctx, `SELECT ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE FROM WORKER_NODE ORDER BY ID DESC LIMIT ?`, count)
		if err == nil {
			starts, err = scanStarts(rows)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return starts, nil
}

func (d *sqliteNodes) explain(err error) error { return explainSQLite(err, d.writer.file, nodeTable()) }
