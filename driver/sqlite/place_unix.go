//go:build unix && !linux

package sqlite

import (
	"os"
	"syscall"
)

// placeOf says where the file at path stands: a file is not a mount point here.
func placeOf(path string) (place, error) {
	info, err := os.Stat(path)
	if err != nil {
		return place{}, err
	}
	p := place{}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		p.names = uint64(st.Nlink)
	}
	return p, nil
}
