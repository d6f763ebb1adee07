// Package leaf holds the vocabulary of the Leaf unique-ID service: a [Range] of
// consecutive IDs, the [Generator] that hands IDs out, and the errors that the
// packages around it share.
//
// Every way of making IDs in this module deals in ranges: a row of a database
// table gives [max_id-step, max_id), a millisecond of a snowflake worker is 4096
// consecutive integers. One rule covers them all: no two ranges handed out in one
// ID space ever overlap.
//
// A program that wants numbers from its own database imports this package,
// package segment and one driver:
//
//	db, err := mysql.New(pool, nil)
//	ids := segment.NewBuffer(db.Store(), "order", nil)
//	id, err := ids.Next(ctx)
//
// One that wants time-ordered IDs under a leased worker ID imports package snowflake:
//
//	db, err := mysql.New(pool, nil)
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	id, err := ids.Next(ctx)
//
// The examples of these packages are whole programs.
//
// This package and package segment import nothing but the standard library.
package leaf
