package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

const byteOrder = ` COLLATE "C"`

// A table is one of those that Leaf keeps in a PostgreSQL database.
type table struct {
	sqlstore.Table
	columns  []column
	meanings map[string]error // the errors of package leaf for error codes
}

// A column describes a column. Init uses the first type.
type column struct {
	name  string
	types []string
	more  string // constraints
	exact bool   // values compare byte for byte
}

// Names and records compare byte for byte.
var (
	allocTable = table{sqlstore.Alloc, []column{
		{"biz_tag", []string{"text", "character varying"}, "PRIMARY KEY", true},
		{"max_id", []string{"bigint"}, "NOT NULL DEFAULT 1", false},
		{"step", []string{"bigint", "integer", "smallint"}, "NOT NULL", false},
		{"description", []string{"text", "character varying"}, "", false},
		{"update_time", []string{"timestamp with time zone"}, "NOT NULL DEFAULT now()", false},
	}, map[string]error{
		codeDuplicate: leaf.ErrTagExists, "22003": leaf.ErrOverflow,
		"22001": errCannotHold, "22021": errCannotHold, "22P05": errCannotHold,
	}}

	workerTable = table{sqlstore.Worker, []column{
		{"worker", []string{"bigint"}, "PRIMARY KEY", false},
		{"record", []string{"text"}, "NOT NULL", true},
		{"update_time", []string{"timestamp with time zone"}, "NOT NULL DEFAULT now()", false},
	}, map[string]error{"22001": errCannotHold, "22021": errCannotHold, "22P05": errCannotHold}}
)

var errCannotHold = fmt.Errorf("%w: the table's column cannot hold it", leaf.ErrInvalid)

// create returns the statement that creates the table.
func (t *table) create(k kind) string {
	columns := make([]string, len(t.columns))
	for i, c := range t.columns {
		collation := ""
		if c.exact && k != cockroach { // which compares by bytes, and knows no other way to say so
			collation = byteOrder
		}
		columns[i] = c.name + " " + c.types[0] + collation + " " + c.more
	}
	return "CREATE TABLE " + t.Name + " (" + strings.Join(columns, ", ") + ")"
}

// Create creates the table and fills it, in one transaction, after a check of the server.
func (p *pool) Create(ctx context.Context, tags []segment.Tag) error {
	s, err := openSession(ctx, p.db)
	if err != nil {
		return err
	}
	defer s.conn.Close()
	server, err := inspectServer(s)
	if err != nil {
		return err
	}
	s.know(server)
	// One that another schema of the search path holds counts too.
	switch err := s.readable(`1`, p.table); {
	case err == nil:
		return p.table.Exists(nil)
	case !isCode(err, codeNoTable):
		return err
	}
	return s.transact(func(s *session) error {
		if err := s.lockInits(); err != nil {
			return err
		}
		if _, err := s.On.ExecContext(ctx, p.table.create(s.facts.kind)); err != nil {
			return err
		}
		if p.table.Identified {
			if err := s.RenewIdentity(); err != nil {
				return err
			}
		}
		return s.Fill(tags)
	})
}

// lockInits has one init at a time go on, until its transaction ends: of several that
// create one table at once the server fails some with errors about its own catalog.
// CockroachDB and YugabyteDB have no such lock; there the code of the error tells.
func (s *session) lockInits() error {
	if s.facts.kind != plain {
		return nil
	}
	_, err := s.On.ExecContext(s.Context, fmt.Sprintf(`SELECT pg_advisory_xact_lock(%d)`, initLock))
	return err
}

// initLock is the number of the lock, which all programs of a database share: "leafinit".
const initLock = 0x6c656166696e6974

// Exists reports whether the table exists.
func (p *pool) Exists(ctx context.Context) (bool, error) {
	s, err := openSession(ctx, p.db)
	if err == nil {
		defer s.conn.Close()
		err = s.readable(`1`, p.table)
	}
	if isCode(err, codeNoTable) {
		return false, nil
	}
	return err == nil, err
}

// readable reports why columns of the table cannot be read.
func (s *session) readable(columns string, t *table) error {
	rows, err := s.Query(`SELECT ` + columns + ` FROM ` + t.Name + ` LIMIT 0`)
	if err != nil {
		return err
	}
	return errors.Join(rows.Err(), rows.Close())
}

// checkTable reports why the table must not be used.
func checkTable(s *session, t *table) error {
	if err := s.readable(t.Columns, t); err != nil {
		return err
	}
	var kind, persistence string
	err := s.QueryRow(`SELECT relkind::text, relpersistence::text FROM pg_catalog.pg_class WHERE oid = to_regclass('`+t.Name+`')`).
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
	found, err := readColumns(s, t)
	if err != nil {
		return err
	}
	for _, want := range t.columns {
		if err := want.compare(found, t.Name); err != nil {
			return err
		}
	}
	return nil
}

// compare reports why a column is not as it must be.
func (c column) compare(found []column, table string) error {
	i := slices.IndexFunc(found, func(f column) bool { return f.name == c.name })
	switch {
	case i < 0:
		return fmt.Errorf("the table %s lacks the column %s: ALTER TABLE %s ADD %s %s", table, c.name, table, c.name, c.types[0])
	case !slices.Contains(c.types, found[i].types[0]):
		return fmt.Errorf("%w: %s is of type %s, which cannot hold or tell apart every value: ALTER TABLE %s ALTER %s TYPE %s",
			leaf.ErrUnsupported, c.name, found[i].types[0], table, c.name, c.types[0])
	case c.exact && !found[i].exact:
		return fmt.Errorf("%w: the collation of %s does not tell all values apart: ALTER TABLE %s ALTER %s TYPE %s%s",
			leaf.ErrUnsupported, c.name, table, c.name, c.types[0], byteOrder)
	}
	return nil
}

// readColumns returns the table's columns. Servers with the column collisdeterministic may have
// collations under which different strings are equal; CockroachDB has another type for such
// strings.
func readColumns(s *session, t *table) ([]column, error) {
	exact, join := `COALESCE((to_jsonb(c)->>'collisdeterministic')::boolean, true)`, `LEFT JOIN pg_catalog.pg_collation c ON c.oid = a.attcollation`
	if s.facts.kind == cockroach {
		exact, join = `true`, ``
	}
	rows, err := s.Query(`SELECT a.attname::text, format_type(a.atttypid, NULL), ` + exact + ` FROM pg_catalog.pg_attribute a ` + join +
		` WHERE a.attrelid = to_regclass('` + t.Name + `') AND a.attnum > 0 AND NOT a.attisdropped`)
	return sqlstore.Collect(rows, err, func(scan func(...any) error) (column, error) {
		c := column{types: make([]string, 1)}
		return c, scan(&c.name, &c.types[0], &c.exact)
	})
}
