package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// A session is one connection of a writer, checked and with its statements
// prepared. Only the writer's goroutine uses it.
type session struct {
	// ctx never ends: a statement is not to be cut off by whoever asked first.
	// Every wait is bounded by busyTimeout.
	ctx                context.Context
	conn               *sql.Conn
	begin, commit, hot *sql.Stmt // hot is that of the table
	file               dbFile
}

// openSession opens a session for the use of a table; the file's name may be empty.
func openSession(db *sql.DB, file string, t table) (*session, error) {
	ctx := context.Background()
	before, _ := os.Stat(file) // as it may be replaced while it is being opened; nil if it is not known
	conn, err := connect(ctx, db)
	if err != nil {
		return nil, err
	}
	s := &session{ctx: ctx, conn: conn}
	err = s.prepare(file, t)
	if err == nil && before != nil {
		s.file.info = before
		err = s.file.checkPath()
	}
	if err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

func (s *session) prepare(file string, t table) (err error) {
	if _, err := s.conn.ExecContext(s.ctx, "PRAGMA synchronous = EXTRA"); err != nil {
		return err
	}
	if err := checkSQLite(s.ctx, s.conn, t); err != nil {
		return err
	}
	if err := quickCheck(s.ctx, s.conn); err != nil {
		return err
	}
	if err := useWAL(s.ctx, s.conn); err != nil { // a copy made by VACUUM INTO is in another mode
		return err
	}
	if s.file, err = findFile(s.ctx, s.conn, file); err != nil {
		return err
	}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&s.begin, "BEGIN IMMEDIATE"}, {&s.commit, "COMMIT"}, {&s.hot, t.hot},
	} {
		if p.query == "" {
			continue
		}
		if *p.to, err = s.conn.PrepareContext(s.ctx, p.query); err != nil {
			return err
		}
	}
	return nil
}

// transact runs each call in one transaction and fills in the answers of those
// that were refused. On an error nothing was committed, or nobody knows.
func (s *session) transact(batch []*call, answers []error) error {
	if _, err := s.begin.ExecContext(s.ctx); err != nil {
		return err
	}
	for i, c := range batch {
		if err := c.ctx.Err(); err != nil {
			answers[i] = err // the caller has left before anything was done
			continue
		}
		err := c.run(s)
		if refused, ok := errors.AsType[refusal](err); ok {
			answers[i] = refused.error
		} else if err != nil {
			return err
		}
	}
	if _, err := s.commit.ExecContext(s.ctx); err != nil {
		return err
	}
	return s.file.check() // before any answer
}

// drop undoes a transaction that is still open and closes the connection. SQLite
// itself lets go of its locks only after the last statement is closed.
func (s *session) drop() {
	for _, stmt := range []*sql.Stmt{s.begin, s.commit, s.hot} {
		if stmt != nil {
			_ = stmt.Close()
		}
	}
	_, _ = s.conn.ExecContext(context.Background(), "ROLLBACK") // an error if none is open
	if s.file.info != nil && s.file.check() != nil {
		// Whoever opens the file by its new name, or with a new log, does not see this one.
		_, _ = s.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(FULL)")
	}
	sqlstore.Discard(s.conn)
}

// load returns a row, or a refusal if there is none of that name.
func (s *session) load(name string) (sqlstore.Row, error) {
	r, err := scanSQLite(s.conn.QueryRowContext(s.ctx, sqliteSelect+` WHERE biz_tag = ?`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return sqlstore.Row{}, refusal{leaf.ErrUnknownTag}
	}
	return r, err
}

// pageSQLite returns up to limit rows by name, from the first if after is nil.
func pageSQLite(ctx context.Context, conn *sql.Conn, after *string, limit int) ([]sqlstore.Row, error) {
	where, args := ``, []any{limit}
	if after != nil {
		where, args = ` WHERE biz_tag > ?2`, append(args, *after)
	}
	rows, err := conn.QueryContext(ctx, sqliteSelect+where+` ORDER BY biz_tag LIMIT ?1`, args...)
	if err != nil {
		return nil, err
	}
	return sqlstore.Collect(rows, scanSQLite)
}

// changeOne runs a statement that changes one row, and is refused with none if it
// finds no row to change.
func (s *session) changeOne(none error, query string, args ...any) error {
	result, err := s.conn.ExecContext(s.ctx, query, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n != 1 {
		return refusal{none}
	}
	return err
}

func scanSQLite(row sqlstore.Scanner) (sqlstore.Row, error) {
	var r sqlstore.Row
	var name, description sql.Null[string]
	var updated sql.Null[int64]
	if err := row.Scan(&name, &r.MaxID, &r.Step, &description, &updated); err != nil {
		return sqlstore.Row{}, err
	}
	if !name.Valid {
		return sqlstore.Row{}, errDamaged // a key is never NULL
	}
	r.Name, r.Description = name.V, description.V
	if updated.Valid {
		r.Updated = time.UnixMilli(updated.V)
	}
	return r, nil
}
