package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/leaf-id/leaf/internal/sqlstore"
)

// A session is one connection of a writer, checked and with its statements prepared. Only
// the writer's goroutine uses it. Its context never ends, so that a statement is not cut
// off by the caller who asked first; every wait is bounded by busyTimeout.
type session struct {
	sqlstore.Session
	conn                   *sql.Conn
	begin, commit, advance *sql.Stmt
	file                   dbFile
}

func newSession(ctx context.Context, conn *sql.Conn) *session {
	return &session{Session: sqlstore.Session{Context: ctx, On: conn, Dialect: &dialect}, conn: conn}
}

// openSession opens a session for the use of a table; the file's name may be empty.
func openSession(db *sql.DB, file string, t table) (*session, error) {
	ctx := context.Background()
	before, _ := os.Stat(file) // as it may be replaced while it is being opened; nil if it is not known
	conn, err := connect(ctx, db)
	if err != nil {
		return nil, err
	}
	s := newSession(ctx, conn)
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
	if err := s.exec("PRAGMA synchronous = EXTRA"); err != nil {
		return err
	}
	if err := checkFormat(s.Context, s.conn, t); err != nil {
		return err
	}
	if err := useWAL(s.Context, s.conn); err != nil { // a copy made by VACUUM INTO is in another mode
		return err
	}
	if s.file, err = findFile(s.Context, s.conn, file); err != nil { // soon, as another log may come to its name
		return err
	}
	if err := quickCheck(s.Context, s.conn); err != nil {
		return err
	}
	if t.Identified {
		if refused, err := s.Identify(s.CreateIdentity); err != nil || refused != nil {
			return cmp.Or(err, refused)
		}
	}
	for query, stmt := range map[string]**sql.Stmt{"BEGIN IMMEDIATE": &s.begin, "COMMIT": &s.commit, t.advance: &s.advance} {
		if query == "" {
			continue
		}
		if *stmt, err = s.conn.PrepareContext(s.Context, query); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) exec(statements ...string) error {
	for _, statement := range statements {
		if _, err := s.conn.ExecContext(s.Context, statement); err != nil {
			return err
		}
	}
	return nil
}

// transact runs each call in one transaction and stores the answers of refused ones. After an error
// it committed nothing, or the outcome is unknown.
func (s *session) transact(batch []*call, answers []error) error {
	if _, err := s.begin.ExecContext(s.Context); err != nil {
		return err
	}
	for i, c := range batch {
		if err := c.ctx.Err(); err != nil {
			answers[i] = err // the caller has left before anything was done
			continue
		}
		err := c.run(s)
		if _, refused := errors.AsType[sqlstore.Refusal](err); refused {
			answers[i] = err
		} else if err != nil {
			return err
		}
	}
	if _, err := s.commit.ExecContext(s.Context); err != nil {
		return err
	}
	return s.file.check() // before any answer
}

// nested runs do in a savepoint of the transaction, and takes back what do wrote if it is refused.
func (s *session) nested(do func(*sqlstore.Session) error) error {
	if err := s.exec("SAVEPOINT call"); err != nil {
		return err
	}
	err := do(&s.Session)
	if _, refused := errors.AsType[sqlstore.Refusal](err); refused {
		return cmp.Or(s.exec("ROLLBACK TO call", "RELEASE call"), err)
	}
	return cmp.Or(err, s.exec("RELEASE call"))
}

// wrote reports whether anything was written on this connection.
func (s *session) wrote() bool {
	var rows int64
	err := s.conn.QueryRowContext(s.Context, "SELECT total_changes()").Scan(&rows)
	return err == nil && rows > 0
}

// drop undoes an open transaction and closes the connection. SQLite itself releases its locks only
// after the last statement is closed.
func (s *session) drop() {
	for _, stmt := range []*sql.Stmt{s.begin, s.commit, s.advance} {
		if stmt != nil {
			_ = stmt.Close()
		}
	}
	_, _ = s.conn.ExecContext(context.Background(), "ROLLBACK") // fails without an open transaction
	if s.file.info != nil && s.file.check() != nil {
		// A process that opens the file by its new name, or with a new log, does not see this log. And
		// SQLite leaves it here, where another file, or this one with later commits, may come.
		_, _ = s.conn.ExecContext(context.Background(), "PRAGMA wal_checkpoint(TRUNCATE)")
	}
	sqlstore.Discard(s.conn)
}
