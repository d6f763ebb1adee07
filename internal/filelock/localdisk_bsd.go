//go:build darwin || freebsd

package filelock

import (
	"strings"
	"syscall"
)

// remoteKind names the kind of network file system that path is on, "" if local.
func remoteKind(path string) (string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return "", err
	}
	var kind strings.Builder
	for _, c := range fs.Fstypename {
		if c != 0 {
			kind.WriteByte(byte(c))
		}
	}
	const local = 0x1000 // MNT_LOCAL
	if fs.Flags&local == 0 || strings.Contains(kind.String(), "fuse") {
		return kind.String(), nil
	}
	return "", nil
}
