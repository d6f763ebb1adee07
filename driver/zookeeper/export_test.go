package zookeeper

import "github.com/leaf-id/leaf/worker"

// Records returns the records without the rules about who may hold which worker ID.
func (l *Leaf) Records() worker.Registry { return l.Registry }
