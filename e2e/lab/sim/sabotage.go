package sim

import (
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
)

// backend is the way of a process to the database.
func (w *world) backend(p *process) kv.Backend { return &port{p, w.db} }

// store is the store of a process's set.
func (w *tagWorld) store(s *tagServer) segment.Store { return s }

func (w *world) sabotaged(rule string) bool { return w.sabotage == rule }
