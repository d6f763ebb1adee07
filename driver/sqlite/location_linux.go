package sqlite

import (
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// locate returns the location of the file at path. Linux before 5.8 does not report mounts here.
func locate(path string) (location, error) {
	file, err := statx(path)
	if err != nil {
		return location{}, err
	}
	folder, err := statx(filepath.Dir(path))
	if err != nil {
		return location{}, err
	}
	p := location{names: uint64(file.Nlink), written: timeOf(file.Mtime), changed: timeOf(file.Ctime)}
	if file.Mask&folder.Mask&unix.STATX_MNT_ID != 0 {
		p.mount, p.folder = file.Mnt_id, folder.Mnt_id
	}
	return p, nil
}

func timeOf(t unix.StatxTimestamp) time.Time { return time.Unix(t.Sec, int64(t.Nsec)) }

func statx(path string) (st unix.Statx_t, err error) {
	err = unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_NLINK|unix.STATX_MNT_ID|unix.STATX_MTIME|unix.STATX_CTIME, &st)
	if err != nil {
		err = fmt.Errorf("statx %s: %w", path, err)
	}
	return st, err
}
