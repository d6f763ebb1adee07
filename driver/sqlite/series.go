package sqlite

import (
	"context"
	"database/sql"

	"github.com/leaf-id/leaf/internal/sqlstore"
)

// CreateSeries creates a series whose first number is first, and the table leaf_series, as far as
// they are missing. A series that exists stays as it is. Call it outside of transactions.
func CreateSeries(ctx context.Context, db *sql.DB, name string, first int64) error {
	return sqlstore.CreateSeries(ctx, db, `CREATE TABLE IF NOT EXISTS leaf_series (
	name TEXT NOT NULL PRIMARY KEY,
	last INTEGER NOT NULL
) STRICT, WITHOUT ROWID`, `INSERT INTO leaf_series (name, last) VALUES (?, ?) ON CONFLICT DO NOTHING`, name, first)
}

// NextTx returns the next number of each series, in the order of the names. It takes the numbers
// inside the caller's transaction: a roll-back returns them, so a series has no gap and no
// duplicate. Other transactions wait until this one ends, as for any write.
//
// After any error the caller rolls back, and repeats the whole transaction if at all: NextTx never
// repeats a statement. Take all series of a transaction in one call; two transactions that take the
// same ones in several calls may deadlock. An unknown series is an error that wraps
// [leaf.ErrUnknownTag].
func NextTx(ctx context.Context, tx *sql.Tx, series ...string) ([]int64, error) {
	return sqlstore.NextTx(ctx, tx, "?", series)
}
