package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/worker"
)

// uid-generator's own table, with default values for the times: without them servers with
// NO_ZERO_DATE and explicit_defaults_for_timestamp=OFF refuse it. Its name is in capitals: servers
// on Linux tell case apart.
var nodeTable = table{sqlstore.Table{
	Name: "WORKER_NODE", Missing: worker.ErrNotCreated, Columns: "ID, HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED",
	Use: "registry", Stake: "worker IDs that were dealt",
}, `CREATE TABLE WORKER_NODE (
	ID          BIGINT      NOT NULL AUTO_INCREMENT,
	HOST_NAME   VARCHAR(64) NOT NULL,
	PORT        VARCHAR(64) NOT NULL,
	TYPE        INT         NOT NULL,
	LAUNCH_DATE DATE        NOT NULL,
	MODIFIED    TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	CREATED     TIMESTAMP   NOT NULL DEFAULT CURRENT_TIMESTAMP,
	PRIMARY KEY (ID)
) ENGINE=InnoDB`, map[uint16]error{
	mysqlconn.Duplicate: errNodesBehind,
	167:                 leaf.ErrOverflow, mysqlconn.NoAutoInc: leaf.ErrOverflow, // AUTO_INCREMENT has reached the end of the column's type
	1267: errCannotHold, 1366: errCannotHold, 1406: errCannotHold, 3854: errCannotHold, 3988: errCannotHold,
}, checkNodes}

// errNodesBehind is a table that deals IDs again.
var errNodesBehind = fmt.Errorf("%w: what makes the IDs of WORKER_NODE is behind its rows, and deals worker IDs again: set it to the highest ID that was ever dealt "+
	"(ALTER TABLE WORKER_NODE AUTO_INCREMENT = N), and start again", leaf.ErrRegression)

// checkNodes reports a table whose IDs are not made by the server, or that may hold one twice.
func checkNodes(f found) error {
	switch {
	case !f.keyIs("id"):
		return fmt.Errorf("%w: ID is not the primary key: ALTER TABLE WORKER_NODE ADD PRIMARY KEY (ID)", leaf.ErrUnsupported)
	case !strings.Contains(f["id"].extra, "auto_increment"):
		return fmt.Errorf("%w: ID does not count up by itself: ALTER TABLE WORKER_NODE MODIFY ID BIGINT NOT NULL AUTO_INCREMENT", leaf.ErrUnsupported)
	}
	return nil
}

// kinds are the types of rows.
var kinds = map[int64]string{1: "container", 2: "actual"}

func (n Node) kind() int64 {
	if n.Container {
		return 1
	}
	return 2
}

func kindName(kind int64) string { return cmp.Or(kinds[kind], fmt.Sprintf("type %d", kind)) }

// nodeRows is the table WORKER_NODE of a database.
type nodeRows struct{ *pool }

func (r nodeRows) create(ctx context.Context) error {
	if err := r.Create(ctx, nil); err != nil {
		return err
	}
	return r.Do(ctx, createMissing)
}

func newNodeRows(db *sql.DB, opts *sqldb.Options) nodeRows {
	return nodeRows{&pool{db: db, table: &nodeTable, logger: opts.WithDefaults().Logger}}
}

// insert checks the session and the server again: both may have changed since the first check. The
// server would deal a rolled-back row, or one on a replica, again.
func (r nodeRows) insert(ctx context.Context, n Node, date string) (id int64, err error) {
	err = r.use(ctx, func(s *session) error {
		if _, err := openable(ctx, s.conn); err != nil {
			return err
		}
		result, err := s.On.ExecContext(ctx, `INSERT INTO WORKER_NODE (HOST_NAME, PORT, TYPE, LAUNCH_DATE, MODIFIED, CREATED)
			VALUES (?, ?, ?, ?, NOW(), NOW())`, n.Host, n.Port, n.kind(), date)
		if err == nil {
			id, err = result.LastInsertId()
		}
		return err
	})
	return id, err
}

func (r nodeRows) latest(ctx context.Context, count int) (starts []worker.Start, err error) {
	err = r.Do(ctx, func(s *sqlstore.Session) error {
		rows, err := s.Query(`SELECT ID, HOST_NAME, PORT, TYPE, CONCAT(LAUNCH_DATE) FROM WORKER_NODE ORDER BY ID DESC LIMIT $1`, count)
		starts, err = sqlstore.Collect(rows, err, func(scan func(...any) error) (start worker.Start, err error) {
			var kind int64
			err = scan(&start.Worker, &start.Host, &start.Port, &kind, &start.Date)
			start.Kind = kindName(kind)
			return start, err
		})
		return err
	})
	return starts, err
}

func (r nodeRows) clock(ctx context.Context) (now time.Time, err error) {
	err = r.Do(ctx, func(s *sqlstore.Session) error {
		now, err = s.Time()
		return err
	})
	return now, err
}
