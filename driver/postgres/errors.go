package postgres

import (
	"context"
	"crypto/tls"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// The error codes of PostgreSQL that this package acts upon.
const (
	postgresPassword      = "28P01"
	postgresAccess        = "28000"
	postgresDuplicate     = "23505"
	postgresSerialization = "40001"
	postgresDeadlock      = "40P01"
	postgresNoColumn      = "42703"
	postgresNoTable       = "42P01"
	postgresTableExists   = "42P07"
	postgresTypeExists    = "42710" // a table is a type too
	postgresNoKey         = "42P10"
)

func isPostgres(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, e.Code)
}

// answerOf returns what the server said. A connection may be tried with encryption and
// without, and be refused twice; that the password is wrong is the one to be told.
func answerOf(err error) (*pgconn.PgError, bool) {
	e, ok := errors.AsType[*pgconn.PgError](err)
	var attempts interface{ Unwrap() []error }
	if errors.As(err, &attempts) {
		for _, err := range attempts.Unwrap() {
			if other, ok := answerOf(err); ok && other.Code == postgresPassword {
				return other, true
			}
		}
	}
	return e, ok
}

// undonePostgres reports that the server undid a statement in favour of others.
func undonePostgres(err error) bool { return isPostgres(err, postgresSerialization, postgresDeadlock) }

// explainPostgres says what is wrong and what to do. None of the errors that it
// passes on holds a password.
func explainPostgres(err error, t table) error {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = connectError{err}
	}
	e, ok := answerOf(err)
	if !ok {
		if advice := postgresNetworkAdvice(err); advice != "" {
			return fmt.Errorf("%s: %w", advice, err)
		}
		return err
	}
	switch {
	case e.Code == postgresTableExists, e.Code == postgresTypeExists,
		e.Code == postgresDuplicate && strings.HasPrefix(e.ConstraintName, "pg_"): // made at the same moment
		return sqlstore.ExistsError{Table: t.Name, Cause: err}
	case e.Code == postgresNoTable && strings.Contains(e.Message, `"`+t.Name+`"`): // another may be missing too
		return fmt.Errorf("%w: %w", t.Absent("the database has no table "+t.Name, "URL"), err)
	case e.Code == postgresNoColumn:
		return fmt.Errorf("the table %s lacks a column, or somebody renamed it: it must have %s: %w", t.Name, t.Columns, err)
	case e.Code == postgresNoKey:
		key, _, _ := strings.Cut(t.Columns, ",")
		return fmt.Errorf("%w: %s is no unique key: ALTER TABLE %s ADD PRIMARY KEY (%s): %w", leaf.ErrUnsupported, key, t.Name, key, err)
	}
	if meaning := t.meaning(e.Code); meaning != nil {
		return fmt.Errorf("%w: %w", meaning, err)
	}
	if advice := postgresAdvice(e.Code, t); advice != "" {
		return fmt.Errorf("%s: %w", advice, err)
	}
	return err
}

// postgresAllocMeaning returns the error of package leaf that a code stands for.
func postgresAllocMeaning(code string) error {
	switch code {
	case postgresDuplicate:
		return leaf.ErrTagExists
	case "22003":
		return leaf.ErrOverflow
	}
	return postgresWorkerMeaning(code)
}

// postgresWorkerMeaning is postgresAllocMeaning for the table of workers.
func postgresWorkerMeaning(code string) error {
	switch code {
	case "22001", "22021", "22P05":
		return fmt.Errorf("%w: the table's column cannot hold it", leaf.ErrInvalid)
	}
	return nil
}

func postgresAdvice(code string, t table) string {
	switch code {
	case postgresPassword:
		return "the server refuses the user: check the user name and the password in the URL"
	case postgresAccess:
		return "the server does not let this user in from here, or not without encryption: check the user name and sslmode in the URL, and the server's pg_hba.conf"
	case "3D000":
		return "there is no such database: create it (CREATE DATABASE), or correct the URL"
	case "3F000":
		return "there is no schema for the table: CREATE SCHEMA, or correct search_path in the URL or of the role (ALTER ROLE … SET search_path)"
	case "42501":
		return "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE ON " + t.Name + " (and CREATE ON SCHEMA for leaf init) to the user"
	case "25006":
		return "the server is read-only: name the primary server in the URL"
	case "53300":
		return "the server has no connection left: raise max_connections or the user's limit, or put a pooler in front"
	case "53100", "53200", "58030":
		return "the server cannot write: check its disk and memory"
	case "57P01", "57P02", "57P03":
		return "the server is starting or stopping"
	case "57014", "55P03":
		return "the server gave up, by its statement_timeout or lock_timeout: end the transaction that holds the row"
	case postgresSerialization, postgresDeadlock:
		return "others changed the row at the same moment: nothing was written, try again"
	case "40003":
		return "the server does not know whether it was written"
	case "23502":
		return "the table has a further column without a default value: give it one"
	case "08P01":
		return "a pooler refuses the connection: remove parameters from the URL, or name them in its ignore_startup_parameters"
	}
	return ""
}

// A connectError is one of pgx, in one line and saying each thing once: its own has a
// line for each address and each kind of encryption that was tried.
type connectError struct{ cause error }

func (e connectError) Error() string {
	answer, answered := answerOf(e.cause)
	var tried []string
	for line := range strings.Lines(e.cause.Error()) {
		line = strings.TrimSpace(line)
		if _, rest, ok := strings.Cut(line, "failed to connect to `"); ok {
			_, line, _ = strings.Cut(rest, "`:")
			line = strings.TrimSpace(line)
		}
		line = strings.Replace(line, "dial error: ", "", 1)
		if answered && (strings.Contains(line, noTLS) || answer.Code == postgresPassword && strings.Contains(line, postgresAccess)) {
			continue // about the encryption, which is not what is wrong
		}
		if line != "" && !slices.Contains(tried, line) {
			tried = append(tried, line)
		}
	}
	return strings.Join(tried, "; ")
}

func (e connectError) Unwrap() error { return e.cause }

const noTLS = "server refused TLS connection"

func postgresNetworkAdvice(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted: name its authority with sslrootcert in the URL, or set sslmode=require"
	}
	if strings.Contains(err.Error(), noTLS) {
		return "the server offers no encryption: set sslmode=disable in the URL, or ssl=on on the server"
	}
	_, unknown := errors.AsType[*net.DNSError](err)
	if op, ok := errors.AsType[*net.OpError](err); unknown || ok && op.Op == "dial" {
		return "no server answers there: check that it runs, and the host and port in the URL"
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok && errors.Is(err, context.DeadlineExceeded) {
		return "the server hangs or cannot be reached: check that it runs, and the host and port in the URL"
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, driver.ErrBadConn) {
		return "the server closed the connection"
	}
	return ""
}
