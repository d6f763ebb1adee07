package zookeeper

import "github.com/leaf-id/leaf/worker"

// Cells returns the records without the rules about who may hold which worker ID.
func (l *Leaf) Cells() worker.Registry { return l.cells }
