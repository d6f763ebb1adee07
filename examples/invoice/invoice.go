// Package invoice numbers invoices without a gap: the number and the invoice are committed together,
// or neither is.
package invoice

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/textid"
)

// series is the name of the series. A series for each year is "invoice-2026", "invoice-2027" and so on.
const series = "invoice"

// Books is a database with invoices. Packages mysql and postgres have the same two functions.
type Books struct {
	db   *sql.DB
	form *textid.Form
}

// Open creates the tables and the series, as far as they are missing.
func Open(ctx context.Context, db *sql.DB) (*Books, error) {
	form, err := textid.New("INV-{n:6}{check:luhn}")
	if err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS invoice (number TEXT PRIMARY KEY, customer TEXT NOT NULL, cents INTEGER NOT NULL CHECK (cents > 0))`); err != nil {
		return nil, err
	}
	if err := sqlite.CreateSeries(ctx, db, series, 1); err != nil {
		return nil, err
	}
	return &Books{db, form}, nil
}

// Issue writes an invoice and returns its number. The number is taken last: other transactions wait
// for the series from then until the commit.
func (b *Books) Issue(ctx context.Context, customer string, cents int64) (number string, err error) {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return "", err
	}
	defer tx.Rollback() // returns the number, unless the transaction was committed
	// Here belongs all that needs no number: stock, prices, addresses.
	n, err := sqlite.NextTx(ctx, tx, series)
	if err != nil {
		return "", err
	}
	if number, err = b.form.Encode(textid.Number{N: n[0]}); err != nil {
		return "", err
	}
	if _, err := tx.ExecContext(ctx, `INSERT INTO invoice (number, customer, cents) VALUES (?, ?, ?)`, number, customer, cents); err != nil {
		return "", fmt.Errorf("write invoice %s: %w", number, err)
	}
	return number, tx.Commit()
}
