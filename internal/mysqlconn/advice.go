package mysqlconn

import (
	"cmp"
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"net"

	"github.com/go-sql-driver/mysql"
)

const (
	badUser      = "the server refuses the user: check the user name and the password in the URL, or add tls=true where it asks for encryption"
	noPrivilege  = "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE (CREATE too to create tables, and DROP with table_per_tag) on the database"
	noDatabase   = "there is no such database: create it (CREATE DATABASE), or correct the URL"
	readOnly     = "the server is read-only: name the primary server in the URL"
	noConnection = "the server has no connection left: raise max_connections or the user's limit"
	badHost      = "the server does not accept this host: allow it (CREATE USER user@host, FLUSH HOSTS)"
	faster       = "others changed the row at the same moment: nothing was written, try again"
	noDisk       = "the server cannot write: check its disk"
)

// advice is what to do about an error number.
var advice = map[uint16]string{
	1045: badUser, 1698: badUser,
	1044: noPrivilege, 1142: noPrivilege, 1143: noPrivilege, 1227: noPrivilege, 1370: noPrivilege,
	1046: noDatabase, 1049: noDatabase,
	1290: readOnly, 1792: readOnly, 1836: readOnly,
	1040: noConnection, 1203: noConnection, 1226: noConnection,
	1129: badHost, 1130: badHost,
	1021: noDisk, 1030: noDisk, 1114: noDisk,
	Deadlock: faster, NotCertified: faster,
	NotReady: "the Galera node is cut off from the others: wait until it has joined, or bring a majority of the nodes back",
	Shutdown: "the server is stopping",
	1205:     "another transaction holds the row: end the one left open on the server",
	1364:     "the table has a further column without a default value: give it one",
	3159:     "the server demands encryption: add tls=true to the URL",
}

// WritesNothing reports an error of a server that does not accept writes.
func WritesNothing(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && advice[e.Number] == readOnly || errors.Is(err, errReadOnly)
}

// Advise adds a remedy to an error, by its number; others overrides the usual remedies. The result
// never has a password.
func Advise(err error, others map[uint16]string) error {
	text := networkAdvice(err)
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		text = cmp.Or(others[e.Number], advice[e.Number])
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
	if errors.Is(err, mysql.ErrNoTLS) {
		return "the server offers no encryption: remove tls from the URL"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "no server answers there: check that it runs, and the host and port in the URL"
	}
	if errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, driver.ErrBadConn) {
		return "the server closed the connection or did not answer in time: check that it runs"
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the server did not answer in time: check that it runs"
	}
	return ""
}
