// Package kvtest is for the tests of drivers over [kv].
package kvtest

import (
	"io"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// Store returns the store of a DB as one that the conformance suite can close.
func Store(db *kv.DB) segment.Store {
	return struct {
		*kv.Store
		io.Closer
	}{db.Store(), db}
}

// Registry returns the registry of a DB as one that the conformance suite can close.
func Registry(db *kv.DB) worker.Registry {
	return struct {
		*kv.Registry
		io.Closer
	}{db.Registry(), db}
}
