package localfs

import "syscall"

// remoteKind names the kind of network file system that folder is on, "" if local.
func remoteKind(folder string) (string, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(folder, &fs); err != nil {
		return "", err
	}
	return kindOf(uint32(fs.Type)), nil
}

// kindOf names the kind of network file system by the number that statfs(2) gives.
func kindOf(magic uint32) string {
	switch magic {
	case 0x6969:
		return "NFS"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "SMB"
	case 0x65735546:
		return "FUSE"
	case 0x01021997:
		return "9p"
	case 0x5346414f, 0x6b414653:
		return "AFS"
	case 0x00c36400:
		return "Ceph"
	case 0x0bd00bd0:
		return "Lustre"
	case 0x47504653:
		return "GPFS"
	case 0x19830326:
		return "BeeGFS"
	case 0x01161970:
		return "GFS2"
	case 0x7461636f:
		return "OCFS2"
	case 0x786f4256:
		return "VirtualBox shared folder"
	}
	return ""
}
