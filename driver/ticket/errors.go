package ticket

import (
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	// errSession is a session that must not be used, nor given back to the pool.
	errSession = errors.New("unfit session")

	// errResized: the server has left the generation that this client knows.
	errResized = errors.New("the set of ticket servers is being changed, or was: once the resize is through, " +
		"start again with the URL of all servers")

	// errLacksTag: to make a tag on a server without knowing how far it was there
	// would start it again.
	errLacksTag = fmt.Errorf("%w: the server lacks the tag or its table, which the others have: set where all servers are to go on, "+
		"above every ID of the tag", segment.ErrDamaged)

	// errLeftOut: other callers have found out meanwhile that the server fails.
	errLeftOut = errors.New("the server failed others a moment ago")
)

// The error numbers of MySQL that this package acts upon.
const (
	mysqlNoTable  = 1146
	mysqlDeadlock = 1213
	mysqlSyntax   = 1064

	// mysqlNoAutoInc: the counter is at its end, or its lock was lost to another statement.
	mysqlNoAutoInc = 1467
)

func isMySQL(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// wrapErr says which server an error comes from, what is wrong and what to do. Nothing
// that it passes on holds a password.
func (m *member) wrapErr(err error) error { return fmt.Errorf("%s: %w", m.Name, explain(err)) }

func wrap(err error, what string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)
}

func explain(err error) error {
	what := networkAdvice(err)
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch e.Number {
		case 1690, 1264, mysqlNoAutoInc, 167: // out of range, and an AUTO_INCREMENT used up
			return fmt.Errorf("%w: %w", leaf.ErrOverflow, err)
		}
		what = mysqlAdvice(e.Number)
	}
	if what == "" {
		return err
	}
	return fmt.Errorf("%s: %w", what, err)
}

// An existsError is [fs.ErrExist], without its words about files.
type existsError struct{ text string }

func (e existsError) Error() string        { return e.text }
func (e existsError) Is(target error) bool { return target == fs.ErrExist }

// failures are what several servers had to say, in one line.
type failures []error

func (f failures) Error() string {
	texts := make([]string, len(f))
	for i, err := range f {
		texts[i] = err.Error()
	}
	slices.Sort(texts) // the same failures are the same text, in whatever order the servers were asked
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

func mysqlAdvice(number uint16) string {
	switch number {
	case 1045, 1698:
		return "the server refuses the user: check the user name and the password in the URL"
	case 1044, 1142, 1143, 1227, 1370:
		return "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE " +
			"(CREATE too to create a set, a resize or a tag, and DROP with table_per_tag) on the database"
	case 1046, 1049:
		return "there is no such database: create it (CREATE DATABASE), or correct the URL"
	case mysqlNoTable:
		return "a table is missing: restore it, or delete the tag and create it above its highest ID"
	case 1290, 1792, 1836:
		return "the server is read-only: each server of a ticket URL must be a primary"
	case mysqlDeadlock:
		return "others drew at the same moment: nothing was written, try again"
	case 1205:
		return "another transaction holds the row: end the one left open on the server"
	}
	return "" // the server's own words say enough
}

func networkAdvice(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted: install its authority, or set tls=skip-verify in the URL"
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return "the server offers no encryption: remove tls from the URL"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "no server answers there: check that it runs, and the host and port in the URL"
	}
	if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
		return "the server closed the connection or did not answer in time"
	}
	return ""
}
