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
	mysqlDuplicate   = 1062
	mysqlSyntax      = 1064
	mysqlNoTable     = 1146
)

func isMySQL(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

func (d *mysqlDB) explain(err error) error { return explainMySQL(err) }

// explainMySQL says what is wrong and what to do. None of the errors that it
// passes on holds a password.
func explainMySQL(err error) error {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		if e.Number == mysqlTableExists {
			return existsError{err}
		}
		// Another table may be missing too: one that a trigger writes to.
		if e.Number == mysqlNoTable && strings.Contains(e.Message, "leaf_alloc") {
			return fmt.Errorf("%w: the database has no table leaf_alloc: create it with leaf init --store URL: %w", ErrNotCreated, err)
		}
		if meaning := mysqlMeaning(e.Number); meaning != nil {
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

// mysqlMeaning returns the error of package leaf that an error number stands for.
func mysqlMeaning(number uint16) error {
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

func mysqlAdvice(number uint16) string {
	switch number {
	case 1045, 1698:
		return "the server refuses the user: check the user name and the password in the store's URL"
	case 1044, 1142, 1143, 1227, 1370:
		return "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE (and CREATE for leaf init) on the database"
	case 1046, 1049:
		return "there is no such database: create it (CREATE DATABASE), or correct the store's URL"
	case 1054:
		return "the table leaf_alloc lacks a column of Java Leaf's (biz_tag, max_id, step, update_time): add it"
	case 1290, 1792, 1836:
		return "the server is read-only: name the primary server in the store's URL"
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
		return "the server demands encryption: add tls=true to the store's URL"
	}
	return ""
}

func networkAdvice(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted: install its authority, or set tls=skip-verify in the store's URL"
	}
	if errors.Is(err, mysql.ErrNoTLS) {
		return "the server offers no encryption: remove tls from the store's URL"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "no server answers there: check that it runs, and the host and port in the store's URL"
	}
	if errors.Is(err, mysql.ErrInvalidConn) {
		return "the server closed the connection or did not answer in time"
	}
	return ""
}
