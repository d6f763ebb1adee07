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
	sqliteApplication = 0x4c656166 // "Leaf", as file(1) and PRAGMA application_id show it
	sqliteFormat      = 1          // PRAGMA user_version

	// update_time is in Unix milliseconds.
	sqliteTable = `CREATE TABLE leaf_alloc (
		biz_tag     TEXT    NOT NULL PRIMARY KEY COLLATE BINARY,
		max_id      INTEGER NOT NULL CHECK (max_id >= 0),
		step        INTEGER NOT NULL CHECK (step > 0),
		description TEXT    NOT NULL DEFAULT '',
		update_time INTEGER NOT NULL
	) STRICT, WITHOUT ROWID`

	sqliteSelect = `SELECT biz_tag, max_id, step, description, update_time FROM leaf_alloc`
	sqliteInsert = `INSERT INTO leaf_alloc (biz_tag, max_id, step, description, update_time) VALUES (?, ?, ?, ?, ?)`
)

// InitStore makes the SQLite database db ready for [NewStore], with the given tags
// in it, all or nothing. It refuses a database that holds anything but Leaf's
// registry, with an error that wraps [io/fs.ErrExist] if that is Leaf's store.
func InitStore(ctx context.Context, db *sql.DB, tags []segment.Tag) error {
	if err := segment.CheckTags(tags); err != nil {
		return fmt.Errorf("init sqlite store: %w", err)
	}
	if err := initSQLite(ctx, db, allocTable(), tags); err != nil {
		return fmt.Errorf("init sqlite store: %w", explainSQLite(err, "", allocTable()))
	}
	return nil
}

func initSQLite(ctx context.Context, db *sql.DB, t table, tags []segment.Tag) error {
	conn, err := connect(ctx, db)
	if err != nil {
		return err
	}
	s := &session{ctx: ctx, conn: conn}
	defer s.drop() // undoes what was not committed
	// Looked at twice: nothing of another application's is changed, not even its
	// journal, and of those who init at once one wins.
	if err := checkRoom(ctx, conn, t); err != nil {
		return err
	}
	if err := useWAL(ctx, conn); err != nil {
		return err
	}
	for _, statement := range []string{
		"PRAGMA synchronous = EXTRA",
		"BEGIN IMMEDIATE",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if err := checkRoom(ctx, conn, t); err != nil {
		return err
	}
	return s.fill(t, tags)
}

// useWAL switches the journal's mode. Of several who do so at once SQLite refuses some
// without waiting for busy_timeout.
func useWAL(ctx context.Context, conn *sql.Conn) error {
	return sqlstore.Repeat(ctx, func(err error) bool { return sqliteCode(err) == sqliteBusy }, func() error {
		_, err := conn.ExecContext(ctx, "PRAGMA journal_mode = WAL")
		return err
	})
}

// fill creates the table with tags in it, and commits.
func (s *session) fill(t table, tags []segment.Tag) error {
	for _, statement := range []string{
		t.create,
		fmt.Sprintf("PRAGMA application_id = %d", sqliteApplication),
		fmt.Sprintf("PRAGMA user_version = %d", sqliteFormat),
	} {
		if _, err := s.conn.ExecContext(s.ctx, statement); err != nil {
			return err
		}
	}
	for _, t := range tags {
		if err := s.changeOne(leaf.ErrTagExists, sqliteInsert, t.Name, t.MaxID, t.Step, t.Description, now()); err != nil {
			return err
		}
	}
	_, err := s.conn.ExecContext(s.ctx, "COMMIT")
	return err
}

// ExistsStore reports whether db holds Leaf's table.
func ExistsStore(ctx context.Context, db *sql.DB) (bool, error) {
	return existsSQLite(ctx, db, allocTable())
}

func existsSQLite(ctx context.Context, db *sql.DB, t table) (bool, error) {
	conn, err := connect(ctx, db)
	var h header
	if err == nil {
		defer sqlstore.Discard(conn)
		h, err = readHeader(ctx, conn, t)
	}
	if err != nil {
		return false, fmt.Errorf("look for the sqlite %s: %w", t.Use, explainSQLite(err, "", t))
	}
	return h.table, nil
}

// checkRoom reports why the table cannot be created in the database.
func checkRoom(ctx context.Context, conn *sql.Conn, t table) error {
	h, err := readHeader(ctx, conn, t)
	switch {
	case err != nil:
		return err
	case h.table:
		return sqlstore.ExistsError{Table: t.Name}
	case h.application == sqliteApplication:
		return h.fault()
	case h.objects > 0 || h.application != 0 || h.format != 0:
		return fmt.Errorf("%w: the database belongs to another application; give Leaf a file of its own", leaf.ErrInvalid)
	}
	return nil
}

// checkSQLite reports why the table must not be used.
func checkSQLite(ctx context.Context, conn *sql.Conn, t table) error {
	h, err := readHeader(ctx, conn, t)
	switch {
	case err != nil:
		return err
	case !h.table:
		return t.Absent("the database has no table "+t.Name, "sqlite:PATH")
	case h.application != sqliteApplication:
		return errors.New("the database was not made by Leaf (its application_id is another): " +
			"make a file with leaf init " + t.Flag + " sqlite:PATH")
	}
	return h.fault()
}

// fault reports why Leaf's own database must not be used.
func (h header) fault() error {
	switch {
	case h.format > sqliteFormat:
		return fmt.Errorf("%w: the database has format %d, this version of Leaf knows up to %d: use a newer Leaf",
			leaf.ErrUnsupported, h.format, sqliteFormat)
	case h.format < 1:
		return fmt.Errorf("the database has the unknown format %d", h.format)
	case h.journal == "memory" || h.journal == "off":
		return fmt.Errorf("%w: journal_mode %s would lose ranges in a crash: use a file with journal_mode WAL",
			leaf.ErrUnsupported, h.journal)
	}
	return nil
}

// quickCheck looks through the whole file: where a part is missing, SQLite may take
// what it finds there for rows that were deleted.
func quickCheck(ctx context.Context, conn *sql.Conn) error {
	var verdict string
	err := conn.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&verdict)
	if err == nil && verdict != "ok" {
		return fmt.Errorf("%w: %s", errDamaged, verdict)
	}
	return err
}

// A header is what an SQLite file says about itself.
type header struct {
	application, format int64
	journal             string
	objects             int  // tables, indexes and so on
	table               bool // there is the one asked for
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
