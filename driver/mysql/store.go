package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// NewStore returns a store in the MySQL or MariaDB database db, opened with
// github.com/go-sql-driver/mysql as [OpenDB] does. It does not connect: what is wrong
// with the server, the table or the session shows at the first call, and each call looks
// anew until all is well.
func NewStore(db *sql.DB, opts *Options) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("open mysql store: %w: no database", leaf.ErrInvalid)
	}
	logger := opts.logger()
	return sqlstore.NewStore(newMySQL(db, logger), logger), nil
}

// mysqlDB has every call use a connection of the pool.
type mysqlDB struct{ *mysqlPool }

func newMySQL(db *sql.DB, logger *slog.Logger) *mysqlDB {
	return &mysqlDB{newMySQLPool(db, allocTable(), logger, checkColumns)}
}

// mysqlExact holds for the one row whose name is that of the two parameters byte
// for byte. The plain equality finds it by the index, but under the column's
// collation; the second term decides.
const mysqlExact = `biz_tag = ? AND CAST(CONVERT(biz_tag USING utf8mb4) AS BINARY) = CAST(? AS BINARY)`

// One packet, committed by its first statement. A counter that cannot move by n is
// left alone, so that there is no row to report instead of a failed statement. The
// %s says whether a transaction is open, which the UPDATE would have become part of.
// A user with enough rights writes on a read-only server too, a replica by now.
const mysqlAdvance = `UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + ?)
		WHERE ` + mysqlExact + ` AND max_id BETWEEN 0 AND ?;
	SELECT ROW_COUNT(), LAST_INSERT_ID(), @@server_id, @@autocommit, FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode) > 0,
			%s, @@read_only, biz_tag IS NOT NULL, max_id, step, UNIX_TIMESTAMP(update_time)
		FROM (SELECT 1) AS one LEFT JOIN leaf_alloc ON ` + mysqlExact

func (d *mysqlDB) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := sqlstore.Repeat(ctx, undoneMySQL, func() error {
		return d.use(ctx, func(conn *sql.Conn, facts *mysqlFacts) (err error) {
			grant, err = facts.advanceOn(ctx, conn, tag, n)
			return err
		})
	})
	return grant, err
}

func (f *mysqlFacts) advanceOn(ctx context.Context, conn *sql.Conn, tag string, n int64) (grant segment.Grant, err error) {
	// A step that somebody changes between the two packets does no harm: the
	// range is computed from the n that the second one is given.
	if n == 0 {
		if n, err = readStep(ctx, conn, tag); err != nil {
			return segment.Grant{}, err
		}
	}
	var a mysqlAnswer
	err = conn.QueryRowContext(ctx, f.advance, n, tag, tag, math.MaxInt64-n, tag, tag).
		Scan(&a.rows, &a.end, &a.server, &a.autocommit, &a.strict, &a.open, &a.readOnly, &a.found, &a.maxID, &a.step, &a.updated)
	if err != nil {
		return segment.Grant{}, err
	}
	grant, err = a.grant(n)
	if f.agreed {
		grant.Server = ""
	}
	return grant, err
}

func readStep(ctx context.Context, conn *sql.Conn, tag string) (int64, error) {
	var step sql.Null[int64]
	err := conn.QueryRowContext(ctx, `SELECT step FROM leaf_alloc WHERE `+mysqlExact, tag, tag).Scan(&step)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, leaf.ErrUnknownTag
	case err != nil:
		return 0, err
	}
	return step.V, sqlstore.StepFault(step)
}

// A mysqlAnswer is what the second statement of mysqlAdvance says of the first.
type mysqlAnswer struct {
	rows               int64  // that the UPDATE changed
	end                uint64 // LAST_INSERT_ID(): says something only if rows is 1
	server             int64
	autocommit, strict bool
	open               bool            // a transaction is
	readOnly           string          // @@read_only: a number, or a word
	found              bool            // the row was, by the SELECT
	maxID, step        sql.Null[int64] // of the row as it stands
	updated            sql.Null[string]
}

// session reports that the session, or its server, must not be used.
func (a mysqlAnswer) session() error {
	switch {
	case isOn(a.readOnly):
		return readOnlyError("read_only", a.readOnly)
	case !a.autocommit:
		return fmt.Errorf("%w: autocommit is off: open the database with autocommit=1", sqlstore.ErrSession)
	case !a.strict:
		return fmt.Errorf("%w: sql_mode lacks STRICT_ALL_TABLES: open the database with it", sqlstore.ErrSession)
	case a.open:
		return fmt.Errorf("%w: a transaction was left open on it: give Leaf a pool of its own", sqlstore.ErrSession)
	}
	return nil
}

func (a mysqlAnswer) grant(n int64) (segment.Grant, error) {
	if err := a.session(); err != nil {
		return segment.Grant{}, err
	}
	switch {
	case a.rows > 1:
		return segment.Grant{}, fmt.Errorf("%d rows have this biz_tag: delete all but the one with the highest max_id, "+
			"and make biz_tag a unique key", a.rows)
	case a.rows == 1 && (!a.found || uint64(a.maxID.V) >= a.end):
		end := int64(a.end)
		grant := segment.Grant{Range: leaf.Range{Start: end - n, End: end}, Step: max(a.step.V, 1), Server: strconv.FormatInt(a.server, 10)}
		if a.maxID.V == end { // else the row is of somebody who came after
			grant.Version = a.updated.V
		}
		return grant, nil
	case a.rows == 1:
		return segment.Grant{}, fmt.Errorf("max_id is %d although %d was just written: somebody lowered it, "+
			"or the column is too small and clamps", a.maxID.V, a.end)
	case !a.found:
		return segment.Grant{}, leaf.ErrUnknownTag
	}
	if err := sqlstore.MaxIDFault(a.maxID); err != nil {
		return segment.Grant{}, err
	}
	return segment.Grant{}, fmt.Errorf("%w: %d IDs from %d", leaf.ErrOverflow, n, a.maxID.V)
}

// giveBack uses one connection from first to last: database/sql sends nothing
// twice on a connection that its caller holds.
//
// The server sets update_time whenever it writes the row, in Java's table to the second.
// That tells apart what an operator or a backup moved back; a new primary is told by its
// number.
func (d *mysqlDB) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return d.write(ctx, last.Server, func(tx *sql.Tx, _ *mysqlFacts) error {
		return changeOne(ctx, tx, sqlstore.ErrMovedOn, `UPDATE leaf_alloc SET max_id = ? WHERE `+mysqlExact+` AND max_id = ? AND UNIX_TIMESTAMP(update_time) = ?`,
			start, tag, tag, last.Range.End, last.Version)
	})
}

// write runs do in a transaction on one connection, which must be to the given server
// unless that is empty. Nothing of it is repeated.
func (d *mysqlDB) write(ctx context.Context, server string, do func(*sql.Tx, *mysqlFacts) error) error {
	return d.use(ctx, func(conn *sql.Conn, facts *mysqlFacts) error {
		tx, err := conn.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err = do(tx, facts); err == nil {
			err = mayCommit(ctx, tx, server)
		}
		if err != nil {
			_ = tx.Rollback() // the first error is the one to tell
			return err
		}
		return tx.Commit()
	})
}

// mayCommit asks apart from what was written: a statement that names the server's own
// variables does something else on a replica that runs it again.
func mayCommit(ctx context.Context, tx *sql.Tx, server string) error {
	var readOnly, current string
	if err := tx.QueryRowContext(ctx, `SELECT @@read_only, @@server_id`).Scan(&readOnly, &current); err != nil {
		return err
	}
	switch {
	case isOn(readOnly):
		return readOnlyError("read_only", readOnly)
	case server != "" && server != current:
		return fmt.Errorf("the range is of server %s and this is %s: it stays unused", server, current)
	}
	return nil
}

// changeOne runs a statement that changes one row, and fails with none if it finds
// no row to change.
func changeOne(ctx context.Context, tx *sql.Tx, none error, query string, args ...any) error {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		return none
	}
	return err
}

func (d *mysqlDB) Close() error { return nil }
