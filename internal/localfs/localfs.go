// Package localfs tells a file system of this machine from one of the network.
// Locks and shared memory of files mean nothing across machines: a database file
// on a network file system can be damaged, and a lock on it proves nothing.
package localfs

import (
	"fmt"
	"path/filepath"
)

// Check reports why the file at path, which need not exist while its folder does,
// must not be trusted to locks: its file system is of a kind that is shared over a
// network (NFS, SMB, 9p, cluster file systems) or may be (FUSE).
func Check(path string) error {
	folder := filepath.Dir(path)
	kind, err := remoteKind(folder)
	if err != nil {
		return fmt.Errorf("look at the file system of %s: %w", folder, err)
	}
	if kind != "" {
		return fmt.Errorf("%s is on a %s file system, where file locks prove nothing: use a folder on a local disk", folder, kind)
	}
	return nil
}
