package sqlite

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// placeOf says where the file at path stands. Linux before 5.8 knows no mounts here.
func placeOf(path string) (fileID, error) {
	file, err := statx(path)
	if err != nil {
		return fileID{}, err
	}
	folder, err := statx(filepath.Dir(path))
	if err != nil {
		return fileID{}, err
	}
	p := fileID{names: uint64(file.Nlink)}
	if file.Mask&folder.Mask&unix.STATX_MNT_ID != 0 {
		p.mount, p.folder = file.Mnt_id, folder.Mnt_id
	}
	return p, nil
}

func statx(path string) (st unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_NLINK|unix.STATX_MNT_ID, &st)
	if err != nil {
		err = fmt.Errorf("statx %s: %w", path, err)
	}
	return st, err
}
