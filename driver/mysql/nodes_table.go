package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/worker"
)

// uid-generator's own table, with default values for the times: without them servers with
// NO_ZERO_DATE and explicit_defaults_for_timestamp=OFF refuse it. Its name is in capitals: servers on Linux tell case apart.
const mysqlNodeTable = `CREATE TABLE WORKER_NODE (
	ID          BIGINT      NOT NULL AUTO_INCREMENT,
	HOST_NAME   VARCHAR(64) NOT NULL,
	PORT        VARCHAR(64) NOT NULL,
	TYPE        INT         NOT NULL,
	LAUNCH_DATE DATE        NOT NULL,
	MODIFIED    TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	CREATED     TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP,
	PRIMARY KEY (ID)
) ENGINE=InnoDB`

// NewNodes returns the worker IDs that the MySQL or MariaDB database db deals,
// opened as for [NewRegistry]. The table may be that of uid-generator itself. It
// does not connect.
func NewNodes(db *sql.DB, opts *NodesOptions) (*Nodes, error) {
	if db == nil {
		return nil, fmt.Errorf("open mysql nodes: %w: no database", leaf.ErrInvalid)
	}
	opts = opts.orNone()
	return newNodes(&mysqlNodes{mysqlRegistry{newMySQLPool(db, nodeTable(), opts.logger(), checkNodeColumns)}}, opts), nil
}

// InitNodes creates the table WORKER_NODE in db. Where there is one it fails with
// an error that wraps [io/fs.ErrExist].
func InitNodes(ctx context.Context, db *sql.DB) error {
	if err := createMySQL(ctx, db, nodeTable()); err != nil {
		return fmt.Errorf("init mysql nodes: %w", explainMySQL(err, nodeTable()))
	}
	return nil
}

// ExistsNodes reports whether db has a table WORKER_NODE.
func ExistsNodes(ctx context.Context, db *sql.DB) (bool, error) {
	return existsMySQL(ctx, db, nodeTable())
}

// checkNodeColumns reports a table whose IDs are not made by the server, or that may
// hold one twice.
func checkNodeColumns(ctx context.Context, conn *sql.Conn, _ *mysqlFacts) error {
	var extra, key sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT MAX(CASE WHEN LOWER(column_name) = 'id' THEN LOWER(extra) END),
			GROUP_CONCAT(CASE WHEN column_key = 'PRI' THEN LOWER(column_name) END)
		FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'WORKER_NODE'`).Scan(&extra, &key)
	switch {
	case err != nil:
		return err
	case key.V != "id":
		return fmt.Errorf("%w: ID is not the primary key: ALTER TABLE WORKER_NODE ADD PRIMARY KEY (ID)", leaf.ErrUnsupported)
	case !strings.Contains(extra.V, "auto_increment"):
		return fmt.Errorf("%w: ID does not count up by itself: ALTER TABLE WORKER_NODE MODIFY ID BIGINT NOT NULL AUTO_INCREMENT", leaf.ErrUnsupported)
	}
	return nil
}

// mysqlNodes has every call use a connection of the pool.
type mysqlNodes struct{ mysqlRegistry }

// insert looks at the session and the server once more: both may have changed since the
// first look, and a row that is rolled back, or that a replica takes, is dealt again.
func (d *mysqlNodes) insert(ctx context.Context, n Node, date string) (id int64, err error) {
	err = d.use(ctx, func(conn *sql.Conn, _ *mysqlFacts) error {
		var now mysqlFacts
		if err := checkSession(ctx, conn, &now); err != nil {
			return err
		}
		if err := checkServer(ctx, conn, &now); err != nil {
			return err
		}
		result, err := conn.ExecContext(ctx, `INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)
			VALUES (?, ?, ?, ?, NOW(), NOW())`, n.Host, n.Port, n.kind(), date)
		if err == nil {
			id, err = result.LastInsertId()
		}
		return err
	})
	return id, err
}

func (d *mysqlNodes) latest(ctx context.Context, count int) (starts []worker.Start, err error) {
	err = d.use(ctx, func(conn *sql.Conn, _ *mysqlFacts) error {
		rows, err := conn.QueryContext(ctx, `SELECT ID, HOST_NAME, PORT, TYPE, CONCAT(LAUNCH_DATE) FROM WORKER_NODE ORDER BY ID DESC LIMIT ?`, count)
		if err == nil {
			starts, err = scanStarts(rows)
		}
		return err
	})
	return starts, err
}

func (d *mysqlNodes) Explain(err error) error { return explainMySQL(err, nodeTable()) }

// nodeMeaning is allocMeaning for WORKER_NODE.
func nodeMeaning(number uint16) error {
	switch number {
	case mysqlDuplicate:
		return errNodesBehind
	case 167, 1467: // AUTO_INCREMENT has come to the end of the column's type
		return leaf.ErrOverflow
	}
	return workerMeaning(number)
}

// errNodesBehind is a table that deals IDs again.
var errNodesBehind = fmt.Errorf("%w: what makes the IDs of WORKER_NODE is behind its rows, and deals worker IDs again: set it to the highest ID that was ever dealt "+
	"(ALTER TABLE WORKER_NODE AUTO_INCREMENT = N), and start again", leaf.ErrRegression)

// scanStarts reads all of rows, which are ID, host, port, type and date, and closes them.
func scanStarts(rows *sql.Rows) ([]worker.Start, error) {
	defer rows.Close()
	var starts []worker.Start
	for rows.Next() {
		var s worker.Start
		var kind int64
		if err := rows.Scan(&s.Worker, &s.Host, &s.Port, &kind, &s.Date); err != nil {
			return nil, err
		}
		s.Kind = kindName(kind)
		starts = append(starts, s)
	}
	return starts, rows.Err()
}
