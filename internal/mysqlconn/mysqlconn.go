// Package mysqlconn has the common part of packages mysql and ticket: checks of a connection and
// its server, and remedies for their errors.
package mysqlconn

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
)

// Error numbers of MySQL.
const (
	NotReady     = 1047 // a Galera node without its majority
	TableExists  = 1050
	Shutdown     = 1053
	NoColumn     = 1054
	Duplicate    = 1062
	Syntax       = 1064
	TableDenied  = 1142
	NoTable      = 1146
	CommitFailed = 1180
	Deadlock     = 1213
	OutOfRange   = 1264
	NoAutoInc    = 1467 // the counter is at its end, or its lock was lost to another statement
	TooLarge     = 1690
	NotCertified = 3101
)

// IsNumber reports whether err is a server error with one of these numbers.
func IsNumber(err error, numbers ...uint16) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(numbers, e.Number)
}

// IsOn reads the value of a variable.
func IsOn(value string) bool {
	return value != "" && value != "0" && !strings.EqualFold(value, "OFF")
}

// CheckSession reports why a connection must not be used. It selects more, which begins
// with a comma or is empty, into dest.
func CheckSession(ctx context.Context, conn *sql.Conn, more string, dest ...any) error {
	var one int
	var charset string
	err := conn.QueryRowContext(ctx, `SELECT ?, @@character_set_client`+more+`; SELECT 1`, 1).Scan(append([]any{&one, &charset}, dest...)...)
	switch {
	case IsNumber(err, Syntax):
		return fmt.Errorf("%w: open the database by mysql.OpenDB, or with multiStatements and interpolateParams: %w", sqlstore.ErrSession, err)
	case err != nil:
		return err
	case !strings.EqualFold(charset, "utf8mb4"):
		return fmt.Errorf("%w: its character set is %s: open the database with charset=utf8mb4", sqlstore.ErrSession, charset)
	}
	return nil
}

// CheckEngine returns the engine of a table, or an error if a crash could cost the stake. Without
// the table it fails with [sql.ErrNoRows].
func CheckEngine(ctx context.Context, conn sqlstore.Querier, table, stake string) (string, error) {
	var kind string
	var engine, transactions sql.Null[string]
	err := conn.QueryRowContext(ctx, `SELECT t.table_type, t.engine, e.transactions
		FROM information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine
		WHERE t.table_schema = DATABASE() AND t.table_name = ?`, table).Scan(&kind, &engine, &transactions)
	switch {
	case err != nil:
		return "", err
	case kind != "BASE TABLE":
		return "", fmt.Errorf("%w: %s is a %s: it must be a table", leaf.ErrUnsupported, table, strings.ToLower(kind))
	case transactions.V != "YES":
		return "", fmt.Errorf("%w: the engine %s of the table %s has no transactions and loses %s in a crash: ALTER TABLE %s ENGINE=InnoDB",
			leaf.ErrUnsupported, engine.V, table, stake, table)
	}
	return engine.V, nil
}

// errReadOnly is a server that does not accept writes.
var errReadOnly = errors.New("the server is read-only")

// ReadOnly is errReadOnly with the variable that says so.
func ReadOnly(name, value string) error {
	return fmt.Errorf("%w (%s=%s): name the primary server in the URL", errReadOnly, name, value)
}

// Variables returns the variables of that kind that a server has, and fails, wrapping
// errReadOnly, if it cannot be written. The connection is one of the driver's.
func Variables(ctx context.Context, conn any, names ...string) (map[string]string, error) {
	q, ok := conn.(driver.QueryerContext)
	if !ok {
		return nil, errors.New("the database was opened with another driver: open it with github.com/go-sql-driver/mysql")
	}
	readOnly := []string{"read_only", "super_read_only", "innodb_read_only"}
	vars, err := Pairs(ctx, q, `SHOW VARIABLES WHERE Variable_name IN ('`+strings.Join(append(names, readOnly...), `', '`)+`')`)
	for _, name := range readOnly {
		if IsOn(vars[name]) {
			return nil, ReadOnly(name, vars[name])
		}
	}
	return vars, err
}

// Pairs runs a query of two columns and returns the second ones by the first.
func Pairs(ctx context.Context, q driver.QueryerContext, query string) (map[string]string, error) {
	rows, err := q.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := make(map[string]string)
	for {
		var pair [2]driver.Value
		switch err := rows.Next(pair[:]); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		found[fmt.Sprintf("%s", pair[0])] = fmt.Sprintf("%s", pair[1])
	}
}

// Value runs a query of one row and one column, a text, and returns it. It asks the driver itself:
// database/sql starts a goroutine for each result.
func Value(ctx context.Context, conn *sql.Conn, query string, args ...any) (text string, err error) {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	err = conn.Raw(func(c any) error {
		q, ok := c.(driver.QueryerContext)
		if !ok {
			return errors.New("the database was opened with another driver: open it with github.com/go-sql-driver/mysql")
		}
		rows, err := q.QueryContext(ctx, query, named)
		if err != nil {
			return err
		}
		var value [1]driver.Value
		err = rows.Next(value[:])
		if b, ok := value[0].([]byte); ok {
			text = string(b) // before Close, which frees the memory
		}
		closed := rows.Close()
		if errors.Is(err, io.EOF) {
			err = sql.ErrNoRows
		}
		return cmp.Or(err, closed)
	})
	return text, err
}
