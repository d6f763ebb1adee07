package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

const (
	application = 0x4c656166 // "Leaf", as file(1) and PRAGMA application_id show it
	format      = 1          // PRAGMA user_version
)

// A table is one of those that Leaf keeps in an SQLite file.
type table struct {
	sqlstore.Table
	create  string // the statement that creates it
	advance string // the statement that a session prepares; may be empty
}

// update_time is in Unix milliseconds.
var (
	allocTable = table{sqlstore.Alloc, `CREATE TABLE leaf_alloc (
		biz_tag     TEXT    NOT NULL PRIMARY KEY COLLATE BINARY,
		max_id      INTEGER NOT NULL CHECK (max_id >= 0),
		step        INTEGER NOT NULL CHECK (step > 0),
		description TEXT    NOT NULL DEFAULT '',
		update_time INTEGER NOT NULL
	) STRICT, WITHOUT ROWID`, advance}

	workerTable = table{sqlstore.Worker, `CREATE TABLE leaf_worker (
	worker      INTEGER NOT NULL PRIMARY KEY CHECK (worker >= 0),
	record      TEXT    NOT NULL COLLATE BINARY,
	update_time INTEGER NOT NULL
) STRICT`, ""}
)

// Exists reports whether the table exists. Without a file it does not.
func (w *writer) Exists(ctx context.Context) (bool, error) {
	conn, err := connect(ctx, w.db)
	if codeOf(err) == codeCantOpen && isMissing(w.File) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer sqlstore.Discard(conn)
	h, err := readHeader(ctx, conn, w.table)
	return h.table, err
}

// Create creates the table with tags in it, all or nothing. It refuses a database of another
// application and changes nothing of it, not even its journal: so it checks before and inside the
// transaction. Of several concurrent inits one succeeds.
func (w *writer) Create(ctx context.Context, tags []segment.Tag) error {
	conn, err := connect(ctx, w.db)
	if err != nil {
		return err
	}
	s := newSession(ctx, conn)
	defer s.drop() // undoes an uncommitted transaction
	for _, step := range []func() error{
		func() error { return checkRoom(ctx, conn, w.table) },
		func() error { return useWAL(ctx, conn) },
		func() error { return s.exec("PRAGMA synchronous = EXTRA", "BEGIN IMMEDIATE") },
		func() error { return checkRoom(ctx, conn, w.table) },
		func() error {
			return s.exec(w.table.create, fmt.Sprintf("PRAGMA application_id = %d", application), fmt.Sprintf("PRAGMA user_version = %d", format))
		},
		func() error {
			if !w.table.Identified {
				return nil
			}
			return s.RenewIdentity()
		},
		func() error { return s.Fill(tags) },
		func() error { return s.exec("COMMIT") },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// useWAL switches the journal's mode. Of several who do so at once SQLite refuses some
// without waiting for busy_timeout.
func useWAL(ctx context.Context, conn *sql.Conn) error {
	return sqlstore.Repeat(ctx, func(err error) bool { return codeOf(err) == codeBusy }, func() error {
		_, err := conn.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		return err
	})
}

// checkRoom reports why the table cannot be created in the database.
func checkRoom(ctx context.Context, conn *sql.Conn, t table) error {
	h, err := readHeader(ctx, conn, t)
	switch {
	case err != nil:
		return err
	case h.table:
		return t.Exists(nil)
	case h.application == application:
		return h.fault()
	case h.objects > 0 || h.application != 0 || h.format != 0:
		return fmt.Errorf("%w: the database belongs to another application; give Leaf a file of its own", leaf.ErrInvalid)
	}
	return nil
}

// checkFormat reports why the table must not be used.
func checkFormat(ctx context.Context, conn *sql.Conn, t table) error {
	h, err := readHeader(ctx, conn, t)
	switch {
	case err != nil:
		return err
	case !h.table:
		return t.Absent("the database has no table " + t.Name)
	case h.application != application:
		return errors.New("the database was not made by Leaf (its application_id is another): give Leaf a file of its own")
	}
	return h.fault()
}

// A header is an SQLite file's description of itself.
type header struct {
	application, format int64
	journal             string
	objects             int  // tables, indexes and so on
	table               bool // the requested one exists
}

func readHeader(ctx context.Context, conn *sql.Conn, t table) (header, error) {
	var h header
	var application, format sql.Null[int64]
	var journal sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT
			(SELECT application_id FROM pragma_application_id), (SELECT user_version FROM pragma_user_version),
			(SELECT journal_mode FROM pragma_journal_mode),
			count(*), count(*) FILTER (WHERE name = ? AND type = 'table')
		FROM sqlite_schema`, t.Name).Scan(&application, &format, &journal, &h.objects, &h.table)
	if err == nil && !(application.Valid && format.Valid && journal.Valid) {
		return header{}, errDamaged
	}
	h.application, h.format, h.journal = application.V, format.V, journal.V
	return h, err
}

// fault reports why Leaf's own database must not be used.
func (h header) fault() error {
	switch {
	case h.format > format:
		return fmt.Errorf("%w: the database has format %d, this version of Leaf knows up to %d: use a newer Leaf", leaf.ErrUnsupported, h.format, format)
	case h.format < 1:
		return fmt.Errorf("the database has the unknown format %d", h.format)
	case h.journal == "memory" || h.journal == "off":
		return fmt.Errorf("%w: journal_mode %s would lose ranges in a crash: use a file with journal_mode WAL", leaf.ErrUnsupported, h.journal)
	}
	return nil
}

// quickCheck reads the whole file: if a part is missing, SQLite may take its content for deleted
// rows.
func quickCheck(ctx context.Context, conn *sql.Conn) error {
	var found string
	err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&found)
	if err == nil && found != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, found)
	}
	return err
}
