// Package memory is a store of tags and a registry of workers in the memory of this process: for
// tests, and for IDs that need to be unique only while the process runs. Nothing outlives it.
//
//	db := memory.New() // no db.Init or db.InitRegistry: it has both parts already
//	set := segment.NewSet(db.Store(), nil)
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
package memory

import (
	"context"
	"errors"

	"github.com/leaf-id/leaf/driver/kv"
)

// A DB is a store without any tag, and a registry without any record, whose clock is this
// machine's.
type DB struct {
	*kv.DB
	Backend *Backend // its clock can be set, and its writes can be taken back
}

// New returns an empty DB.
func New() *DB {
	b := NewBackend()
	db := kv.New(b, nil)
	ctx := context.Background()
	if err := errors.Join(db.Init(ctx, nil), db.InitRegistry(ctx)); err != nil {
		panic(err) // the memory is always there
	}
	return &DB{db, b}
}
