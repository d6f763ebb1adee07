//go:build unix && !linux

package sqlite

import (
	"os"
	"syscall"
)

// locate returns the location of the file at path. A file cannot be a mount point here.
func locate(path string) (location, error) {
	info, err := os.Stat(path)
	if err != nil {
		return location{}, err
	}
	p := location{}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		p.names = uint64(st.Nlink)
	}
	return p, nil
}
