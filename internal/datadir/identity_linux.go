package datadir

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const bootID = "/proc/sys/kernel/random/boot_id"

// identity tells the file that is open from every copy of it, and from itself before
// this machine was last started: by the boot ID, and the file's device, inode and
// birth time. It fails where the machine hides its boot ID, as systemd's ProcSubset=pid
// has it, or the file system does not say when a file was made.
func identity(f *os.File) (string, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return "", err
	}
	var st unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_BTIME
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, want, &st); err != nil {
		return "", fmt.Errorf("statx: %w", err)
	}
	if st.Mask&want != want || st.Btime.Sec == 0 {
		return "", errors.New("the file system does not say when it was made")
	}
	return fmt.Sprintf("boot %s device %d:%d inode %d born %d.%09d", strings.TrimSpace(string(boot)),
		st.Dev_major, st.Dev_minor, st.Ino, st.Btime.Sec, st.Btime.Nsec), nil
}
