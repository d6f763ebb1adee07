package sqldb

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
)

// The error numbers of MySQL that this package acts upon.
const (
	mysqlTableExists = 1050
	mysqlNoColumn    = 1054
	mysqlDuplicate   = 1062
	mysqlSyntax      = 1064
	mysqlNoTable     = 1146
)

func isMySQL(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

func (d *mysqlDB) explain(err error) error { return explainMySQL(err, allocTable()) }

// explainMySQL says what is wrong and what to do. None of the errors that it
// passes on holds a password.
func explainMySQL(err error, t table) error {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		if e.Number == mysqlTableExists {
			return existsError{t.name, err}
		}
		// Another table may be missing too: one that a trigger writes to.
		if e.Number == mysqlNoTable && strings.Contains(e.Message, t.name) {
			return fmt.Errorf("%w: %w", t.absent("the database has no table "+t.name, "URL"), err)
		}
		if e.Number == mysqlNoColumn {
			return fmt.Errorf("the table %s lacks a column, or somebody renamed it: it must have %s: %w", t.name, t.columns, err)
		}
		if meaning := t.mysqlMeaning(e.Number); meaning != nil {
			return fmt.Errorf("%w: %w", meaning, err)
		}
		if advice := mysqlAdvice(e.Number); advice != "" {
			return fmt.Errorf("%s: %w", advice, err)
		}
		return err
	}
	if advice := networkAdvice(err); advice != "" {
		return fmt.Errorf("%s: %w", advice, err)
	}
	return err
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
		return "the server refuses the user: check the user name and the password in the URL"
	case 1044, 1142, 1143, 1227, 1370:
		return "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE (and CREATE for leaf init) on the database"
	case 1046, 1049:
		return "there is no such database: create it (CREATE DATABASE), or correct the URL"
	case 1290, 1792, 1836:
		return "the server is read-only: name the primary server in the URL"
	case 1040, 1203, 1226:
		return "the server has no connection left: raise max_connections or the user's limit"
	case 1129, 1130:
		return "the server does not accept this host: allow it (CREATE USER user@host, FLUSH HOSTS)"
	case 1205, 1213:
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
		return "the server's certificate is not trusted: install its authority, or set tls=skip-verify in the URL"
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return "the server offers no encryption: remove tls from the URL"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "no server answers there: check that it runs, and the host and port in the URL"
	}
	if errors.Is(err, mysql.ErrInvalidConn) {
		return "the server closed the connection or did not answer in time"
	}
	return ""
}
