// Package memory is a store of tags and a registry of workers in the memory of this
// process: for tests, and for IDs that need to be unique only while the process runs.
// Nothing outlives it.
package memory

import (
	"context"

	"github.com/leaf-id/leaf/driver/kv"
)

// A Store keeps tags in memory. It is a segment.Store, a segment.Returner and a
// segment.Catalog. Its methods are safe for concurrent use.
type Store struct{ *kv.Store }

// New returns a Store without any tag.
func New() *Store {
	db := kv.New(NewBackend(), nil)
	if err := db.Init(context.Background(), nil); err != nil {
		panic(err) // the memory is always there
	}
	return &Store{db.Store()}
}

// A Registry keeps the records of workers in memory. It is a worker.Registry and a
// worker.Watcher, and serves leases among the nodes of one process. Its methods are safe
// for concurrent use.
type Registry struct {
	*kv.Registry
	Backend *Backend // whose clock can be set, and whose writes can be taken back
}

// NewRegistry returns a Registry without any record, whose clock is this machine's.
func NewRegistry() *Registry {
	b := NewBackend()
	db := kv.New(b, nil)
	if err := db.InitRegistry(context.Background()); err != nil {
		panic(err) // the memory is always there
	}
	return &Registry{db.Registry(), b}
}
