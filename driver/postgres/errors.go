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
)

// The error codes of PostgreSQL that this package acts upon.
const (
	codePassword      = "28P01"
	codeAccess        = "28000"
	codeDuplicate     = "23505"
	codeSerialization = "40001"
	codeDeadlock      = "40P01"
	codePrivilege     = "42501"
	codeNoFunction    = "42883"
	codeUnsupported   = "0A000"
	codeNoColumn      = "42703"
	codeNoTable       = "42P01"
	codeTableExists   = "42P07"
	codeTypeExists    = "42710" // a table is a type too
	codeNoKey         = "42P10"
)

const (
	starting = "the server is starting or stopping"
	gaveUp   = "the server gave up, by its statement_timeout or lock_timeout: end the transaction that holds the row"
	noDisk   = "the server cannot write: check its disk and memory"
	faster   = "others changed the row at the same moment: nothing was written, try again"
)

// advice is what to do about an error code.
var advice = map[string]string{
	codePassword: "the server refuses the user: check the user name and the password in the URL",
	codeAccess:   "the server does not let this user in from here, or not without encryption: check the user name and sslmode in the URL, and the server's pg_hba.conf",
	"3D000":      "there is no such database: create it (CREATE DATABASE), or correct the URL",
	"3F000":      "there is no schema for the table: CREATE SCHEMA, or correct search_path in the URL or of the role (ALTER ROLE … SET search_path)",
	"42501":      "the user lacks a privilege: GRANT SELECT, INSERT, UPDATE, DELETE ON {table} to the user, and CREATE ON SCHEMA to create the table",
	"25006":      "the server is read-only: name the primary server in the URL",
	"53300":      "the server has no connection left: raise max_connections or the user's limit, or put a pooler in front",
	"53100":      noDisk, "53200": noDisk, "58030": noDisk,
	"57P01": starting, "57P02": starting, "57P03": starting,
	"57014": gaveUp, "55P03": gaveUp,
	codeSerialization: faster, codeDeadlock: faster,
	"40003": "the server does not know whether it was written",
	"23502": "the table has a further column without a default value: give it one",
	"08P01": "a pooler refuses the connection: remove parameters from the URL, or name them in its ignore_startup_parameters",
}

func isCode(err error, codes ...string) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && slices.Contains(codes, e.Code)
}

// undone reports that the server undid a statement in favour of others.
func undone(err error) bool { return isCode(err, codeSerialization, codeDeadlock) }

// answerOf returns the server's error. pgx may try a connection with and without encryption and get
// two refusals; a wrong password is the one to report.
func answerOf(err error) (*pgconn.PgError, bool) {
	e, ok := errors.AsType[*pgconn.PgError](err)
	var attempts interface{ Unwrap() []error }
	if errors.As(err, &attempts) {
		for _, err := range attempts.Unwrap() {
			if other, ok := answerOf(err); ok && other.Code == codePassword {
				return other, true
			}
		}
	}
	return e, ok
}

// explain adds a remedy to an error. The result never has a password.
func explain(err error, t *table) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		err = connectError{err}
	}
	e, ok := answerOf(err)
	if !ok {
		return advise(networkAdvice(err), err)
	}
	switch {
	case e.Code == codeTableExists, e.Code == codeTypeExists,
		e.Code == codeDuplicate && strings.HasPrefix(e.ConstraintName, "pg_"): // made at the same moment
		return t.Exists(err)
	case e.Code == codeNoTable && strings.Contains(e.Message, `"`+t.Name+`"`): // another may be missing too
		return fmt.Errorf("%w: %w", t.Absent("the database has no table "+t.Name), err)
	case e.Code == codeNoColumn:
		return t.LacksColumn(err)
	case e.Code == codeNoKey:
		key := t.columns[0].name
		return fmt.Errorf("%w: %s is not a unique key: ALTER TABLE %s ADD PRIMARY KEY (%s): %w", leaf.ErrUnsupported, key, t.Name, key, err)
	case t.meanings[e.Code] != nil:
		return fmt.Errorf("%w: %w", t.meanings[e.Code], err)
	}
	name := t.Name
	if denied, ok := strings.CutPrefix(e.Message, "permission denied for table "); ok {
		name = denied
	}
	return advise(strings.Replace(advice[e.Code], "{table}", name, 1), err)
}

func advise(advice string, err error) error {
	if advice == "" {
		return err
	}
	return fmt.Errorf("%s: %w", advice, err)
}

// A connectError is an error of pgx on one line, without repetitions: pgx has a line for each
// address and each kind of encryption.
type connectError struct{ cause error }

func (e connectError) Error() string {
	answer, answered := answerOf(e.cause)
	var tried []string
	for line := range strings.Lines(e.cause.Error()) {
		if _, rest, ok := strings.Cut(line, "failed to connect to `"); ok {
			_, line, _ = strings.Cut(rest, "`:")
		}
		line = strings.Replace(strings.TrimSpace(line), "dial error: ", "", 1)
		if answered && (strings.Contains(line, noTLS) || answer.Code == codePassword && strings.Contains(line, codeAccess)) {
			continue // about the encryption, which is not the problem
		}
		if line != "" && !slices.Contains(tried, line) {
			tried = append(tried, line)
		}
	}
	return strings.Join(tried, "; ")
}

func (e connectError) Unwrap() error { return e.cause }

const noTLS = "server refused TLS connection" // pgx has no error value for it

func networkAdvice(err error) string {
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
