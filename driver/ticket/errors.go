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
)

var (
	// errSession is a session that must not be used, nor given back to the pool.
	errSession = errors.New("unfit session")

	// errResized: the server has left the generation that this client knows.
	errResized = errors.New("the set of ticket servers is being changed, or was: once leaf init --resize is through, " +
		"start again with the URL of all servers")

	// errLacksTag: to make a tag on a server without knowing how far it was there
	// would start it again.
	errLacksTag = errors.New("the server lacks the tag or its table, which the others have: say where all servers are to go on, " +
		"above every ID of the tag, with leaf tag set TAG --max-id")

	// errLeftOut: others have found out meanwhile that the server fails.
	errLeftOut = errors.New("the server failed others a moment ago")
)

// The error numbers of MySQL that this package acts upon.
const (
	mysqlNoTable  = 1146
	mysqlDeadlock = 1213
	mysqlSyntax   = 1064
)

func isMySQL(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// explain says what is wrong and what to do. Nothing that it passes on holds a password.
func explain(err error) error {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		switch e.Number {
		case 1690, 1264, 1467, 167: // out of range, and an AUTO_INCREMENT used up
			return fmt.Errorf("%w: %w", leaf.ErrOverflow, err)
		}
		return advise(mysqlAdvice(e.Number), err)
	}
	return advise(networkAdvice(err), err)
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
	slices.Sort(texts) // whoever was asked first: the same trouble is the same text
	return strings.Join(texts, "; ")
}

func (f failures) Unwrap() []error { return f }

func advise(advice string, err error) error {
	if advice == "" {
		return err
	}
	return fmt.Errorf("%s: %w", advice, err)
}

func mysqlAdvice(number uint16) string {
	switch number {
	case 1045, 1698:
		return "the server refuses the user: check the user name and the password in the URL"
	case 1044, 1142, 1143, 1227, 1370:
		return "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE " +
			"(and CREATE, with table_per_tag DROP, for leaf init and leaf tag) on the database"
	case 1046, 1049:
		return "there is no such database: create it (CREATE DATABASE), or correct the URL"
	case mysqlNoTable:
		return "a table is missing: restore it, or delete the tag and create it above its highest ID"
	case 1290, 1792, 1836:
		return "the server is read-only: each server of a ticket URL must be a primary"
	case 1040, 1203, 1226:
		return "the server has no connection left: raise max_connections or the user's limit"
	case 1129, 1130:
		return "the server does not accept this host: allow it (CREATE USER user@host, FLUSH HOSTS)"
	case mysqlDeadlock:
		return "others drew at the same moment: nothing was written, try again"
	case 1205:
		return "another transaction holds the row: end the one left open on the server"
	case 1021, 1030, 1114:
		return "the server cannot write: check its disk"
	case 3159:
		return "the server demands encryption: add tls=true to the URL"
	}
	return ""
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
