package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// Java Leaf's table, whose names compare byte for byte but for trailing spaces.
const mysqlTable = `CREATE TABLE leaf_alloc (
	biz_tag     VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
	max_id      BIGINT NOT NULL DEFAULT 1,
	step        INT NOT NULL,
	description VARCHAR(256) CHARACTER SET utf8mb4 DEFAULT NULL,
	update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	PRIMARY KEY (biz_tag)
) ENGINE=InnoDB`

// InitMySQL creates the table leaf_alloc in db, with the given tags in it. Where
// there is one it fails with an error that wraps [io/fs.ErrExist].
func InitMySQL(ctx context.Context, db *sql.DB, tags []segment.Tag) error {
	if err := checkTags(tags); err != nil {
		return fmt.Errorf("init mysql store: %w", err)
	}
	if err := createMySQL(ctx, db); err != nil {
		return fmt.Errorf("init mysql store: %w", explainMySQL(err))
	}
	d := &mysqlDB{db: db, logger: (*Options)(nil).logger()}
	err := d.write(ctx, func(tx *sql.Tx, facts *mysqlFacts) error {
		for _, tag := range tags {
			if err := insertMySQL(ctx, tx, facts, tag); err != nil {
				return fmt.Errorf("tag %q: %w", tag.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("init mysql store: the table was created, its tags were not: %w", explainMySQL(err))
	}
	return nil
}

// createMySQL creates the table, after a look at what would stand in the way of
// its use.
func createMySQL(ctx context.Context, db *sql.DB) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := checkSession(ctx, conn, nil); err != nil {
		return err
	}
	if err := checkServer(ctx, conn, new(mysqlFacts)); err != nil {
		return err
	}
	_, err = conn.ExecContext(ctx, mysqlTable)
	return err
}

// ExistsMySQL reports whether db has a table leaf_alloc.
func ExistsMySQL(ctx context.Context, db *sql.DB) (bool, error) {
	rows, err := db.QueryContext(ctx, `SELECT 1 FROM leaf_alloc LIMIT 0`)
	if isMySQL(err, mysqlNoTable) {
		return false, nil
	}
	if err == nil {
		err = rows.Close()
	}
	if err != nil {
		return false, fmt.Errorf("look for the mysql store: %w", explainMySQL(err))
	}
	return true, nil
}

// mysqlFacts is what a store needs to know of its server and table.
type mysqlFacts struct {
	description bool   // there is a column for it
	agreed      bool   // commits are agreed upon with other servers: none is lost in a fail-over
	flush       string // innodb_flush_log_at_trx_commit
	advance     string // mysqlAdvance as this server understands it
}

// inspect reports why the server, its table or this session must not be used.
func (d *mysqlDB) inspect(ctx context.Context, conn *sql.Conn) (*mysqlFacts, error) {
	var facts mysqlFacts
	for _, check := range []func(context.Context, *sql.Conn, *mysqlFacts) error{
		checkSession, checkServer, checkReadable, checkEngine, checkColumns,
	} {
		if err := check(ctx, conn, &facts); err != nil {
			return nil, err
		}
	}
	d.logger.Info("mysql store ready", "description", facts.description, "commits_agreed", facts.agreed)
	if facts.flush != "1" {
		d.logger.Warn("a power cut may take back IDs that were handed out: set innodb_flush_log_at_trx_commit=1 on the server",
			"innodb_flush_log_at_trx_commit", facts.flush)
	}
	return &facts, nil
}

func checkSession(ctx context.Context, conn *sql.Conn, _ *mysqlFacts) error {
	var a mysqlAnswer
	var charset string
	err := conn.QueryRowContext(ctx, `SELECT ?, @@autocommit, FIND_IN_SET('STRICT_ALL_TABLES', @@sql_mode) > 0, @@character_set_client; SELECT 1`, 1).
		Scan(&a.rows, &a.autocommit, &a.strict, &charset)
	switch {
	case isMySQL(err, mysqlSyntax):
		return fmt.Errorf("%w: open the database with multiStatements and interpolateParams: %w", errSession, err)
	case err != nil:
		return err
	case !strings.EqualFold(charset, "utf8mb4"):
		return fmt.Errorf("%w: its character set is %s: open the database with charset=utf8mb4", errSession, charset)
	}
	if _, err := a.grant(1); errors.Is(err, errSession) {
		return err
	}
	return nil
}

func checkReadable(ctx context.Context, conn *sql.Conn, _ *mysqlFacts) error {
	rows, err := conn.QueryContext(ctx, `SELECT biz_tag, max_id, step, update_time FROM leaf_alloc LIMIT 0`)
	if err != nil {
		return err
	}
	return rows.Close()
}

func checkEngine(ctx context.Context, conn *sql.Conn, _ *mysqlFacts) error {
	var kind string
	var engine, transactions sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT t.table_type, t.engine, e.transactions
		FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
		WHERE t.table_schema = DATABASE() AND t.table_name = 'leaf_alloc'`).Scan(&kind, &engine, &transactions)
	switch {
	case err != nil:
		return err
	case kind != "BASE TABLE":
		return fmt.Errorf("%w: leaf_alloc is a %s: it must be a table", leaf.ErrUnsupported, strings.ToLower(kind))
	case transactions.V != "YES":
		return fmt.Errorf("%w: the table's engine %s has no transactions and loses ranges in a crash: ALTER TABLE leaf_alloc ENGINE=InnoDB",
			leaf.ErrUnsupported, engine.V)
	}
	return nil
}

func checkColumns(ctx context.Context, conn *sql.Conn, facts *mysqlFacts) error {
	rows, err := conn.QueryContext(ctx, `SELECT LOWER(column_name), LOWER(column_type)
		FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = 'leaf_alloc'`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			return err
		}
		facts.description = facts.description || name == "description"
		if name == "max_id" && (!strings.HasPrefix(kind, "bigint") || strings.Contains(kind, "unsigned")) {
			return fmt.Errorf("%w: max_id is of type %s, which cannot hold every ID or deals one range for ever at its end: "+
				"ALTER TABLE leaf_alloc MODIFY max_id BIGINT NOT NULL DEFAULT 1", leaf.ErrUnsupported, kind)
		}
	}
	return rows.Err()
}
