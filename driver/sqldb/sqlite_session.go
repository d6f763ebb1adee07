package sqldb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// busyTimeout is how long a transaction waits for other processes.
const busyTimeout = 5 * time.Second

// A session is one connection of a writer, checked and with its statements
// prepared. Only the writer's goroutine uses it.
type session struct {
	// ctx never ends: a statement is not to be cut off by whoever asked first.
	// Every wait is bounded by busyTimeout.
	ctx                    context.Context
	conn                   *sql.Conn
	begin, commit, advance *sql.Stmt
}

func openSession(db *sql.DB) (*session, error) {
	ctx := context.Background()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{ctx: ctx, conn: conn}
	if err := s.prepare(); err != nil {
		s.drop()
		return nil, err
	}
	return s, nil
}

func (s *session) prepare() (err error) {
	for _, pragma := range []string{
		fmt.Sprintf("PRAGMA busy_timeout = %d", busyTimeout.Milliseconds()),
		"PRAGMA synchronous = FULL",
	} {
		if _, err := s.conn.ExecContext(s.ctx, pragma); err != nil {
			return err
		}
	}
	if err := checkSQLite(s.ctx, s.conn); err != nil {
		return err
	}
	for _, p := range []struct {
		to    **sql.Stmt
		query string
	}{
		{&s.begin, "BEGIN IMMEDIATE"}, {&s.commit, "COMMIT"}, {&s.advance, sqliteAdvance},
	} {
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
	_, err := s.commit.ExecContext(s.ctx)
	return err
}

// drop undoes a transaction that is still open and closes the connection rather
// than give it back to the pool. SQLite itself closes a connection, and lets go of
// its locks, only after its last statement.
func (s *session) drop() {
	for _, stmt := range []*sql.Stmt{s.begin, s.commit, s.advance} {
		if stmt != nil {
			_ = stmt.Close()
		}
	}
	_, _ = s.conn.ExecContext(context.Background(), "ROLLBACK")  // an error if none is open
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn }) // that is the way to say so
	_ = s.conn.Close()
}

// load returns a tag, or a refusal if there is none of that name.
func (s *session) load(name string) (segment.Tag, error) {
	tag, err := scanSQLite(s.conn.QueryRowContext(s.ctx, sqliteSelect+` WHERE biz_tag = ?`, name))
	if errors.Is(err, sql.ErrNoRows) {
		return segment.Tag{}, refusal{leaf.ErrUnknownTag}
	}
	return tag, err
}

func (s *session) all() ([]segment.Tag, error) {
	rows, err := s.conn.QueryContext(s.ctx, sqliteSelect+` ORDER BY biz_tag`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var tags []segment.Tag
	for rows.Next() {
		tag, err := scanSQLite(rows)
		if err != nil {
			return nil, err
		}
		tags = append(tags, tag)
	}
	return tags, rows.Err()
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

func scanSQLite(row interface{ Scan(...any) error }) (segment.Tag, error) {
	var tag segment.Tag
	var updated int64
	if err := row.Scan(&tag.Name, &tag.MaxID, &tag.Step, &tag.Description, &updated); err != nil {
		return segment.Tag{}, err
	}
	tag.Updated = time.UnixMilli(updated)
	return tag, nil
}
