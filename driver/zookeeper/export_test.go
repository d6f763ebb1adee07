package zookeeper

import (
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/worker"
)

// Records returns the records without the rules about who may hold which worker ID.
func (l *Leaf) Records() worker.Registry { return l.Registry }

// Paths returns what tells the node of a key.
func Paths(chroot, name string) func(key kv.Key) string {
	return (&backend{root: chroot + "/snowflake/" + name}).path
}
