package mysql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// The error numbers of MySQL that this package acts upon.
const (
	mysqlNotReady     = 1047 // of a Galera node that is cut off from the others
	mysqlTableExists  = 1050
	mysqlShutdown     = 1053
	mysqlNoColumn     = 1054
	mysqlDuplicate    = 1062
	mysqlSyntax       = 1064
	mysqlNoTable      = 1146
	mysqlCommitFailed = 1180
	mysqlDeadlock     = 1213
	mysqlNotCertified = 3101
)

// mysqlReadOnly are the error numbers of a server that does not accept writes.
var mysqlReadOnly = []uint16{1290, 1792, 1836}

func isMySQL(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

func (d *mysqlDB) Explain(err error) error { return explainMySQL(err, allocTable()) }

// undoneMySQL reports that the server undid a transaction in favour of others: a
// deadlock, or a commit that a cluster did not certify. Of the errors of a commit only
// the one that says so counts, because others leave the outcome open. A wait for a
// lock that has come to its end is not repeated: whoever holds it is no passer-by.
func undoneMySQL(err error) bool {
	e, ok := errors.AsType[*gomysql.MySQLError](err)
	return ok && (e.Number == mysqlDeadlock || e.Number == mysqlNotCertified ||
		e.Number == mysqlCommitFailed && strings.HasPrefix(e.Message, "Got error 149 "))
}

// explainMySQL says what is wrong and what to do. None of the errors that it
// passes on holds a password.
func explainMySQL(err error, t table) error {
	if _, ok := errors.AsType[*mysqlHostsError](err); ok {
		return err // it says so for each server
	}
	if e, ok := errors.AsType[*gomysql.MySQLError](err); ok {
		if e.Number == mysqlTableExists {
			return sqlstore.ExistsError{Table: t.Name, Cause: err}
		}
		// Another table may be missing too: one that a trigger writes to.
		if e.Number == mysqlNoTable && strings.Contains(e.Message, t.Name) {
			return fmt.Errorf("%w: %w", t.Absent("the database has no table "+t.Name, "URL"), err)
		}
		if e.Number == mysqlNoColumn {
			return fmt.Errorf("the table %s lacks a column, or somebody renamed it: it must have %s: %w", t.Name, t.Columns, err)
		}
		if meaning := t.meaning(e.Number); meaning != nil {
			return fmt.Errorf("%w: %w", meaning, err)
		}
	}
	return adviseMySQL(err)
}

// adviseMySQL says what to do about what no table has a part in.
func adviseMySQL(err error) error {
	advice := networkAdvice(err)
	if e, ok := errors.AsType[*gomysql.MySQLError](err); ok {
		advice = mysqlAdvice(e.Number)
	}
	if advice == "" {
		return err
	}
	return fmt.Errorf("%s: %w", advice, err)
}

// allocMeaning returns the error of package leaf that an error number stands for.
func allocMeaning(number uint16) error {
	switch number {
	case mysqlDuplicate:
		return fmt.Errorf("%w, or one that the collation of biz_tag does not tell from it (by case, accents or trailing spaces)", leaf.ErrTagExists)
	case 1267, 3988: // the name has characters that the column cannot hold
		return leaf.ErrUnknownTag
	case 1366, 1406, 3854:
		return fmt.Errorf("%w: the table's column cannot hold it", leaf.ErrInvalid)
	case 1690, 1264:
		return leaf.ErrOverflow
	}
	return nil
}

// workerMeaning is allocMeaning for the table of workers.
func workerMeaning(number uint16) error {
	switch number {
	case 1267, 1366, 1406, 3854, 3988:
		return fmt.Errorf("%w: the table's column cannot hold it", leaf.ErrInvalid)
	}
	return nil
}

func mysqlAdvice(number uint16) string {
	switch number {
	case 1045, 1698:
		return "the server refuses the user: check the user name and the password in the URL, or add tls=true where it asks for encryption"
	case 1044, 1142, 1143, 1227, 1370:
		return "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE (and CREATE for leaf init) on the database"
	case 1046, 1049:
		return "there is no such database: create it (CREATE DATABASE), or correct the URL"
	case mysqlNotReady:
		return "the Galera node is cut off from the others: wait until it has joined, or bring a majority of the nodes back"
	case mysqlShutdown:
		return "the server is stopping"
	case 1290, 1792, 1836:
		return "the server is read-only: name the primary server in the URL"
	case 1040, 1203, 1226:
		return "the server has no connection left: raise max_connections or the user's limit"
	case 1129, 1130:
		return "the server does not accept this host: allow it (CREATE USER user@host, FLUSH HOSTS)"
	case mysqlDeadlock, mysqlNotCertified:
		return "others changed the row at the same moment: nothing was written, try again"
	case 1205:
		return "another transaction holds the row: end the one left open on the server"
	case 1021, 1030, 1114:
		return "the server cannot write: check its disk"
	case 1364:
		return "the table has a further column without a default value: give it one"
	case 3159:
		return "the server demands encryption: add tls=true to the URL"
	}
	return ""
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
