package filelock

import "syscall"

// remoteKind names the kind of network file system that path is on, "" if local.
func remoteKind(path string) (string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(path, &fs); err != nil {
		return "", err
	}
	return RemoteKinds[uint32(fs.Type)], nil
}

// RemoteKinds names network file systems by the number that statfs(2) gives. Tests add a local one.
var RemoteKinds = map[uint32]string{
	0x6969: "NFS", 0x517b: "SMB", 0xff534d42: "SMB", 0xfe534d42: "SMB", 0x65735546: "FUSE", 0x01021997: "9p",
	0x5346414f: "AFS", 0x6b414653: "AFS", 0x00c36400: "Ceph", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS",
	0x19830326: "BeeGFS", 0x01161970: "GFS2", 0x7461636f: "OCFS2", 0x786f4256: "VirtualBox shared folder",
}
