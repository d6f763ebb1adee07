package mysql

import (
	"context"
	"database/sql"
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

// InitStore creates the table leaf_alloc in db, with the given tags in it. Where
// there is one it fails with an error that wraps [io/fs.ErrExist].
func InitStore(ctx context.Context, db *sql.DB, tags []segment.Tag) error {
	if err := segment.CheckTags(tags); err != nil {
		return fmt.Errorf("init mysql store: %w", err)
	}
	if err := createMySQL(ctx, db, allocTable()); err != nil {
		return fmt.Errorf("init mysql store: %w", explainMySQL(err, allocTable()))
	}
	d := newMySQL(db, (*Options)(nil).logger())
	err := d.write(ctx, "", func(tx *sql.Tx, facts *mysqlFacts) error {
		for _, tag := range tags {
			if err := insertMySQL(ctx, tx, facts, tag); err != nil {
				return fmt.Errorf("tag %q: %w", tag.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("init mysql store: the table was created, its tags were not: %w", explainMySQL(err, allocTable()))
	}
	return nil
}

// createMySQL creates the table, after a look at what would stand in the way of
// its use.
func createMySQL(ctx context.Context, db *sql.DB, t table) error {
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
	_, err = conn.ExecContext(ctx, t.create)
	return err
}

// ExistsStore reports whether db has a table leaf_alloc.
func ExistsStore(ctx context.Context, db *sql.DB) (bool, error) {
	return existsMySQL(ctx, db, allocTable())
}

func existsMySQL(ctx context.Context, db *sql.DB, t table) (bool, error) {
	rows, err := db.QueryContext(ctx, `SELECT 1 FROM `+t.Name+` LIMIT 0`)
	if isMySQL(err, mysqlNoTable) {
		return false, nil
	}
	if err == nil {
		err = rows.Close()
	}
	if err != nil {
		return false, fmt.Errorf("look for the mysql %s: %w", t.Use, explainMySQL(err, t))
	}
	return true, nil
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
