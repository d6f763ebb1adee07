package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// The table leaf_series keeps the last number of each series. Programs take numbers in their own
// transactions, and no server serves them.

// NextTx takes the next number of each series. It never repeats a statement: after a deadlock MySQL
// has ended the transaction, and a repeated UPDATE would commit alone. The UPDATE comes before the
// read, so that the row is locked when it is read. The sorted order keeps two calls from a deadlock.
func NextTx(ctx context.Context, tx *sql.Tx, placeholder string, series []string) ([]int64, error) {
	taken := make(map[string]int64, len(series))
	for _, name := range series {
		taken[name] = 0
	}
	if len(taken) != len(series) {
		return nil, fmt.Errorf("%w: a series is named twice", leaf.ErrInvalid)
	}
	for _, name := range slices.Sorted(maps.Keys(taken)) {
		n, err := nextTx(ctx, tx, placeholder, name)
		if err != nil {
			return nil, fmt.Errorf("take a number of series %q: %w", name, err)
		}
		taken[name] = n
	}
	numbers := make([]int64, len(series))
	for i, name := range series {
		numbers[i] = taken[name]
	}
	return numbers, nil
}

func nextTx(ctx context.Context, tx *sql.Tx, placeholder, name string) (n int64, err error) {
	changed, err := tx.ExecContext(ctx, `UPDATE leaf_series SET last = last + 1 WHERE name = `+placeholder, name)
	if err != nil {
		return 0, err
	}
	if rows, err := changed.RowsAffected(); err != nil || rows != 1 {
		return 0, errors.Join(err, leaf.ErrUnknownTag)
	}
	err = tx.QueryRowContext(ctx, `SELECT last FROM leaf_series WHERE name = `+placeholder, name).Scan(&n)
	return n, err
}

// CreateSeries creates the table and a series, as far as they are missing. A failed CREATE TABLE
// counts only without a table: another program may have been faster, and a user may lack the right.
func CreateSeries(ctx context.Context, db *sql.DB, create, insert, name string, first int64) error {
	if err := segment.CheckTagName(name); err != nil {
		return err
	}
	if first < 0 {
		return fmt.Errorf("%w: the first number %d is negative", leaf.ErrInvalid, first)
	}
	_, failed := db.ExecContext(ctx, create)
	if _, err := db.ExecContext(ctx, insert, name, first-1); err != nil {
		return fmt.Errorf("create series %q: %w", name, errors.Join(failed, err))
	}
	return nil
}
