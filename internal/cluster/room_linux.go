package cluster

import "syscall"

// hasRoom reports whether the disk of a folder has room for a start.
func hasRoom(folder string) bool {
	var disk syscall.Statfs_t
	return syscall.Statfs(folder, &disk) == nil && disk.Bavail >= startRoom/uint64(disk.Bsize)
}
