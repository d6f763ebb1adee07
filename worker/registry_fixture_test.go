package worker_test

import (
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
)

// A registry is one in memory, whose clock can be set, and whose writes can be taken back.
type registry struct {
	*kv.Registry
	Backend *memory.Backend
}

func newRegistry() registry {
	db := memory.New()
	return registry{db.Registry(), db.Backend}
}
