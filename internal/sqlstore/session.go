package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// A Dialect spells the statements of this package for one database. Their parameters are $1, $2 and
// so on.
type Dialect struct {
	Bind func(query string, args []any) (string, []any) // puts the parameters as the driver takes them

	Equal       string // that the column %[1]s is the parameter %[2]s, byte for byte
	IfAbsent    string // added to an INSERT: do nothing where the key %s is there already
	ForUpdate   string // added to a SELECT: lock the row
	Now         string // a new value of update_time
	Touch       string // added to SET: update_time, where the server does not set it by itself
	Later       string // a value of update_time above its own and above the time
	Micros      string // update_time in Unix microseconds
	Description string // the description of a tag; empty: the table has no such column
	Joined      string // an aggregate of all biz_tag and step in a group, as a text; empty: unsupported
	Unversioned error  // why update_time does not tell the writes of a row apart; nil: it does
	CountTables string // a query that counts the tables with the name $1; empty: Has tells

	// Has reports whether the database has a table, where tables that the user may not read do not
	// show in a count.
	Has func(s *Session, table string) (bool, error)

	DeletedTable string // the statement that creates leaf_deleted, unless it is there
	OptionTable  string // the statement that creates leaf_option, unless it is there
	StrictTable  string // the statement that creates leaf_strict, unless it is there
	Server       string // an expression for the server, a text; empty: no other one takes over without commits
	Mark         string // the statement that records in leaf_store, for Has, that the table $2 has rows; $1 is the row

	StoreTable   string // the name of the table leaf_store; empty: that
	StoreColumns string // its columns, for the statement that creates it
	Clock        string // the server's time in Unix microseconds; empty: it runs on this machine

	// Guard is an expression whose value, a text, Check judges with each read of a
	// record: the server or the session may be unfit by now.
	Guard string
	Check func(guard string) error

	// Guarded: Check must judge the session before each write of a record. Then records have no
	// version: a swap reads the cell with the guard.
	Guarded bool

	// Settings is an expression for the settings of the server, a text, by which MayLose judges
	// whether commits can be lost; empty: they cannot. They change while a store is open.
	Settings string
	MayLose  func(settings string) bool

	// Change runs a statement that changes rows and returns how many; nil: the driver tells.
	Change func(s *Session, query string, args ...any) (int64, error)

	// Undone reports that the server undid a statement for certain, in favour of others.
	Undone func(error) bool
}

func (d *Dialect) equal(column, parameter string) string {
	return fmt.Sprintf(d.Equal, column, parameter)
}

func (d *Dialect) ifAbsent(key string) string {
	if d.IfAbsent == "" {
		return ""
	}
	return fmt.Sprintf(d.IfAbsent, key)
}

// A Session is a connection, or a transaction on one, for the time of one call.
type Session struct {
	Context context.Context
	On      Querier
	*Dialect
}

// A Querier is an [sql.Conn] or an [sql.Tx].
type Querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// Query runs a statement that returns rows.
func (s *Session) Query(query string, args ...any) (*sql.Rows, error) {
	query, args = s.Bind(query, args)
	return s.On.QueryContext(s.Context, query, args...)
}

// QueryRow runs a statement that returns one row.
func (s *Session) QueryRow(query string, args ...any) *sql.Row {
	query, args = s.Bind(query, args)
	return s.On.QueryRowContext(s.Context, query, args...)
}

// Change runs a statement that changes rows, and returns how many.
func (s *Session) Change(query string, args ...any) (int64, error) {
	if s.Dialect.Change != nil {
		return s.Dialect.Change(s, query, args...)
	}
	query, args = s.Bind(query, args)
	result, err := s.On.ExecContext(s.Context, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// changeOne runs a statement that changes one row. If no row matches, the call fails with none, as
// a refusal.
func (s *Session) changeOne(none error, query string, args ...any) error {
	n, err := s.Change(query, args...)
	if err == nil && n != 1 {
		return Refusal{none}
	}
	return err
}

// A Refusal is an error that concerns one call alone: the call has changed nothing.
type Refusal struct{ error }

// Unwrap returns the reason.
func (r Refusal) Unwrap() error { return r.error }

// ErrSession is wrapped where a session must not be used, nor given back to the pool.
var ErrSession = errors.New("unfit session")

// Collect reads all of rows and closes them.
func Collect[T any](rows *sql.Rows, err error, scan func(scan func(...any) error) (T, error)) ([]T, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		v, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, errors.Join(rows.Err(), rows.Close()) // a commit may fail after the last row
}

// StoreConns is how many connections of a pool a store uses at a time. A pool that a
// registry shares must allow more: while the store's table is locked the registry still has
// to extend a lease.
const StoreConns = 16

// Slots bound the concurrent calls; nil: no bound.
type Slots chan struct{}

// Take waits for a slot, which Free gives back.
func (s Slots) Take(ctx context.Context) error {
	if s == nil {
		return nil
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Free gives a slot back.
func (s Slots) Free() {
	if s != nil {
		<-s
	}
}

// Discard closes a connection rather than give it back to the pool.
func Discard(conn *sql.Conn) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // database/sql then closes the connection
	_ = conn.Close()
}

// Positional is the Bind of a driver with ? for each parameter. It repeats an argument for each
// use.
func Positional(query string, args []any) (string, []any) {
	var text strings.Builder
	var list []any
	for {
		before, after, found := strings.Cut(query, "$")
		text.WriteString(before)
		if !found {
			return text.String(), list
		}
		list = append(list, args[after[0]-'1'])
		text.WriteByte('?')
		query = after[1:]
	}
}

// Repeat makes a call again for as long as undone knows its error: the server says for
// certain that it undid the call in favour of others. It ends with ctx, or after five seconds
// and fifty calls: on a busy machine five seconds are few calls.
func Repeat(ctx context.Context, undone func(error) bool, call func() error) error {
	const longest, limit, least = 100 * time.Millisecond, 5 * time.Second, 50
	start, calls := time.Now(), 0
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, longest) {
		err := call()
		calls++
		if !undone(err) || calls >= least && time.Since(start) > limit {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: others were faster again and again: %w", ctx.Err(), err)
		case <-time.After(rand.N(wait)):
		}
	}
}

// DeadlineTooShort reports that a caller's time was up so soon that it says nothing of the server.
func DeadlineTooShort(err error, start time.Time) bool {
	return errors.Is(err, context.DeadlineExceeded) && time.Since(start) < 500*time.Millisecond
}
