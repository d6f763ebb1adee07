//go:build darwin || freebsd

package localfs

import (
	"strings"

	"golang.org/x/sys/unix"
)

// remoteKind names the kind of network file system that folder is on, "" if local.
func remoteKind(folder string) (string, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(folder, &fs); err != nil {
		return "", err
	}
	kind := unix.ByteSliceToString(fs.Fstypename[:])
	if fs.Flags&unix.MNT_LOCAL == 0 || strings.Contains(kind, "fuse") {
		return kind, nil
	}
	return "", nil
}
