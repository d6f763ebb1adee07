package mysql

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"
)

// The error numbers of MySQL that this package acts upon.
const (
	numberNotReady     = 1047 // of a Galera node that is cut off from the others
	numberTableExists  = 1050
	numberShutdown     = 1053
	numberNoColumn     = 1054
	numberDuplicate    = 1062
	numberSyntax       = 1064
	numberNoTable      = 1146
	numberCommitFailed = 1180
	numberDeadlock     = 1213
	numberNotCertified = 3101
)

const (
	badUser      = "the server refuses the user: check the user name and the password in the URL, or add tls=true where it asks for encryption"
	noPrivilege  = "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE (and CREATE to create the tables) on the database"
	noDatabase   = "there is no such database: create it (CREATE DATABASE), or correct the URL"
	readOnly     = "the server is read-only: name the primary server in the URL"
	noConnection = "the server has no connection left: raise max_connections or the user's limit"
	badHost      = "the server does not accept this host: allow it (CREATE USER user@host, FLUSH HOSTS)"
	faster       = "others changed the row at the same moment: nothing was written, try again"
	noDisk       = "the server cannot write: check its disk"
)

// readOnlyNumbers are those of a server that does not accept writes.
var readOnlyNumbers = []uint16{1290, 1792, 1836}

// advice is what to do about an error number.
var advice = map[uint16]string{
	1045: badUser, 1698: badUser,
	1044: noPrivilege, 1142: noPrivilege, 1143: noPrivilege, 1227: noPrivilege, 1370: noPrivilege,
	1046: noDatabase, 1049: noDatabase,
	1290: readOnly, 1792: readOnly, 1836: readOnly,
	1040: noConnection, 1203: noConnection, 1226: noConnection,
	1129: badHost, 1130: badHost,
	1021: noDisk, 1030: noDisk, 1114: noDisk,
	numberDeadlock: faster, numberNotCertified: faster,
	numberNotReady: "the Galera node is cut off from the others: wait until it has joined, or bring a majority of the nodes back",
	numberShutdown: "the server is stopping",
	1205:           "another transaction holds the row: end the one left open on the server",
	1364:           "the table has a further column without a default value: give it one",
	3159:           "the server demands encryption: add tls=true to the URL",
}

func isNumber(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// undone reports that the server undid a transaction in favour of others: a
// deadlock, or a commit that a cluster did not certify. Of the errors of a commit only
// the one that says so counts, because others leave the outcome open. A wait for a
// lock that has come to its end is not repeated: its holder will likely hold it again.
func undone(err error) bool {
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	return ok && (e.Number == numberDeadlock || e.Number == numberNotCertified ||
		e.Number == numberCommitFailed && strings.HasPrefix(e.Message, "Got error 149 "))
}

// serverFailed reports whether an error says that a server is of no use for others either.
func serverFailed(err error) bool {
	return errors.Is(err, errReadOnly) || errors.Is(err, errNotReady) || isNumber(err, numberNotReady, numberShutdown) ||
		isNumber(err, readOnlyNumbers...) || errors.Is(err, gomysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.DeadlineExceeded)
}

// explain says what is wrong and what to do. None of the errors that it
// passes on holds a password.
func explain(err error, t *table) error {
	if _, ok := errors.AsType[*hostsError](err); ok {
		return err // it says so for each server
	}
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	switch {
	case !ok:
		return advise(err)
	case e.Number == numberTableExists:
		return t.Exists(err)
	case e.Number == numberNoTable && strings.Contains(e.Message, t.Name): // a trigger's table may be missing too
		return fmt.Errorf("%w: %w", t.Absent("the database has no table "+t.Name), err)
	case e.Number == numberNoColumn:
		return t.LacksColumn(err)
	case t.meanings[e.Number] != nil:
		return fmt.Errorf("%w: %w", t.meanings[e.Number], err)
	}
	return advise(err)
}

// advise says what to do about what no table has a part in.
func advise(err error) error {
	text := networkAdvice(err)
	if e, ok := errors.AsType[*gomysql.MySQLError](err); ok {
		text = advice[e.Number]
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%s: %w", text, err)
}

func networkAdvice(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted: name its authority with ca=FILE in the URL, or set tls=skip-verify"
	}
	if errors.Is(err, gomysql.ErrNoTLS) {
		return "the server offers no encryption: remove tls from the URL"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "no server answers there: check that it runs, and the host and port in the URL"
	}
	if errors.Is(err, gomysql.ErrInvalidConn) {
		return "the server closed the connection or did not answer in time: check that it runs"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the server did not answer in time: check that it runs"
	}
	return ""
}
