package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

const (
	byteOrder = ` COLLATE "C"`

	// Names compare byte for byte.
	postgresTable = `CREATE TABLE leaf_alloc (
	biz_tag     text` + byteOrder + ` NOT NULL,
	max_id      bigint      NOT NULL DEFAULT 1,
	step        bigint      NOT NULL,
	description text,
	update_time timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (biz_tag)
)`

	postgresWorkers = `CREATE TABLE leaf_worker (
	worker      bigint      NOT NULL,
	record      text` + byteOrder + ` NOT NULL,
	update_time timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (worker)
)`
)

// A postgresColumn says what a column must be like. The first type is the one that
// the init gives it.
type postgresColumn struct {
	name  string
	types []string
	exact bool // values compare byte for byte
}

func postgresAllocColumns() []postgresColumn {
	return []postgresColumn{
		{"biz_tag", []string{"text", "character varying"}, true},
		{"max_id", []string{"bigint"}, false},
		{"step", []string{"bigint", "integer", "smallint"}, false},
		{"description", []string{"text", "character varying"}, false},
		{"update_time", []string{"timestamp with time zone"}, false},
	}
}

func postgresWorkerColumns() []postgresColumn {
	return []postgresColumn{
		{"worker", []string{"bigint"}, false},
		{"record", []string{"text"}, true},
		{"update_time", []string{"timestamp with time zone"}, false},
	}
}

// InitStore creates the table leaf_alloc in db, with the given tags in it, all or
// nothing. Where there is one it fails with an error that wraps [io/fs.ErrExist].
func InitStore(ctx context.Context, db *sql.DB, tags []segment.Tag) error {
	if err := segment.CheckTags(tags); err != nil {
		return fmt.Errorf("init postgres store: %w", err)
	}
	err := createPostgres(ctx, db, allocTable(), func(s *postgresSession) error {
		for _, tag := range tags {
			if err := s.insert(ctx, tag); err != nil {
				return fmt.Errorf("tag %q: %w", tag.Name, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("init postgres store: %w", explainPostgres(err, allocTable()))
	}
	return nil
}

// createPostgres creates the table and fills it, in one transaction, after a look at
// what would stand in the way of its use.
func createPostgres(ctx context.Context, db *sql.DB, t table, fill func(*postgresSession) error) error {
	s, err := openPostgresSession(ctx, db)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	if s.facts, err = inspectServer(ctx, s); err != nil {
		return err
	}
	// One that another schema of the search path holds counts too.
	switch err := readable(ctx, s, `1`, t); {
	case err == nil:
		return sqlstore.ExistsError{Table: t.Name}
	case !isPostgres(err, postgresNoTable):
		return err
	}
	statement := t.create
	if s.facts.kind == cockroach { // compares by bytes, and knows no other way to say so
		statement = strings.ReplaceAll(statement, byteOrder, "")
	}
	return s.transact(ctx, func(s *postgresSession) error {
		if err := s.lockInits(ctx); err != nil {
			return err
		}
		if _, err := s.on.ExecContext(ctx, statement); err != nil {
			return err
		}
		return fill(s)
	})
}

// lockInits has one init at a time go on, until its transaction ends: of several that
// create one table at once the server fails some with errors about its own catalog.
// CockroachDB and YugabyteDB have no such lock; there the code of the error tells.
func (s *postgresSession) lockInits(ctx context.Context) error {
	if s.facts.kind != plainPostgres {
		return nil
	}
	_, err := s.on.ExecContext(ctx, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, postgresInitLock))
	return err
}

// postgresInitLock is the number of the lock, which all programs of a database share:
// "leafinit".
const postgresInitLock = 0x6c656166696e6974

// ExistsStore reports whether db has a table leaf_alloc.
func ExistsStore(ctx context.Context, db *sql.DB) (bool, error) {
	return existsPostgres(ctx, db, allocTable())
}

func existsPostgres(ctx context.Context, db *sql.DB, t table) (bool, error) {
	s, err := openPostgresSession(ctx, db)
	if err == nil {
		defer s.conn.Close()
		err = readable(ctx, s, `1`, t)
	}
	switch {
	case isPostgres(err, postgresNoTable):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look for the postgres %s: %w", t.Use, explainPostgres(err, t))
	}
	return true, nil
}

// readable reports why columns of the table cannot be read.
func readable(ctx context.Context, s *postgresSession, columns string, t table) error {
	rows, err := s.query(ctx, `SELECT `+columns+` FROM `+t.Name+` LIMIT 0`)
	if err != nil {
		return err
	}
	return errors.Join(rows.Err(), rows.Close())
}

// checkPostgresTable reports why the table must not be used.
func checkPostgresTable(ctx context.Context, s *postgresSession, facts *postgresFacts, t table) error {
	if err := readable(ctx, s, t.Columns, t); err != nil {
		return err
	}
	var kind, persistence string
	err := s.queryRow(ctx, `SELECT relkind::text, relpersistence::text FROM pg_catalog.pg_class WHERE oid = to_regclass('`+t.Name+`')`).
		Scan(&kind, &persistence)
	switch {
	case err != nil:
		return err
	case kind != "r" && kind != "p":
		return fmt.Errorf("%w: %s is a view or a table of another server: it must be a table", leaf.ErrUnsupported, t.Name)
	case persistence == "t":
		return fmt.Errorf("%w: %s is a temporary table of this session: drop it", leaf.ErrUnsupported, t.Name)
	case persistence == "u":
		return fmt.Errorf("%w: %s is unlogged and loses %s in a crash: ALTER TABLE %s SET LOGGED", leaf.ErrUnsupported, t.Name, t.Stake, t.Name)
	}
	return checkPostgresColumns(ctx, s, facts, t)
}

// foundColumn is a column as the server describes it.
type foundColumn struct {
	kind  string
	exact bool
}

func checkPostgresColumns(ctx context.Context, s *postgresSession, facts *postgresFacts, t table) error {
	found, err := readPostgresColumns(ctx, s, facts, t)
	if err != nil {
		return err
	}
	for _, want := range t.columns {
		got, ok := found[want.name]
		switch {
		case !ok:
			return fmt.Errorf("the table %s lacks the column %s: ALTER TABLE %s ADD %s %s", t.Name, want.name, t.Name, want.name, want.types[0])
		case !slices.Contains(want.types, got.kind):
			return fmt.Errorf("%w: %s is of type %s, which cannot hold or tell apart every value: ALTER TABLE %s ALTER %s TYPE %s",
				leaf.ErrUnsupported, want.name, got.kind, t.Name, want.name, want.types[0])
		case want.exact && !got.exact:
			return fmt.Errorf("%w: the collation of %s does not tell all values apart: ALTER TABLE %s ALTER %s TYPE %s%s",
				leaf.ErrUnsupported, want.name, t.Name, want.name, want.types[0], byteOrder)
		}
	}
	return nil
}

// readPostgresColumns returns the table's columns by name. A collation that takes
// different strings for equal can be made on servers that have the column
// collisdeterministic; CockroachDB has another type for such strings.
func readPostgresColumns(ctx context.Context, s *postgresSession, facts *postgresFacts, t table) (map[string]foundColumn, error) {
	exact, join := `COALESCE((to_jsonb(c)->>'collisdeterministic')::boolean, true)`, `LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation`
	if facts.kind == cockroach {
		exact, join = `true`, ``
	}
	rows, err := s.query(ctx, `SELECT a.attname::text, format_type(a.atttypid, NULL), `+exact+` FROM pg_catalog.pg_attribute a `+join+
		` WHERE a.attrelid = to_regclass('`+t.Name+`') AND a.attnum > 0 AND NOT a.attisdropped`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]foundColumn)
	for rows.Next() {
		var name string
		var c foundColumn
		if err := rows.Scan(&name, &c.kind, &c.exact); err != nil {
			return nil, err
		}
		found[name] = c
	}
	return found, rows.Err()
}
