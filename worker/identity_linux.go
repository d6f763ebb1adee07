package worker

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// identity tells the open file from every copy of it, and from itself before the last
// start of the machine: by the boot ID, and the file's device, inode and birth time. It
// fails where the machine hides its boot ID, as systemd's ProcSubset=pid does, or the file
// system does not record when a file was made.
func identity(f *os.File) (string, error) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", err
	}
	st, err := statx(f)
	if err != nil {
		return "", fmt.Errorf("statx: %w", err)
	}
	const inode, birth = 0x100, 0x800 // STATX_INO, STATX_BTIME
	n := binary.NativeEndian
	if n.Uint32(st[0:])&(inode|birth) != inode|birth || n.Uint64(st[80:]) == 0 {
		return "", errors.New("the file system does not say when the file was made")
	}
	return fmt.Sprintf("boot %s device %d:%d inode %d born %d.%09d", bytes.TrimSpace(boot),
		n.Uint32(st[136:]), n.Uint32(st[140:]), n.Uint64(st[32:]), n.Uint64(st[80:]), n.Uint32(st[88:])), nil
}

// statx returns the kernel's struct statx of an open file.
func statx(f *os.File) (st [256]byte, err error) {
	number := map[string]uintptr{"amd64": 332, "386": 383, "arm": 397, "ppc64": 383, "ppc64le": 383, "s390x": 379,
		"arm64": 291, "riscv64": 291, "loong64": 291}[runtime.GOARCH]
	if number == 0 {
		return st, fmt.Errorf("on %s: %w", runtime.GOARCH, errors.ErrUnsupported)
	}
	const emptyPath, want = 0x1000, 0x100 | 0x800
	var path byte
	if _, _, errno := syscall.Syscall6(number, f.Fd(), uintptr(unsafe.Pointer(&path)), emptyPath, want, uintptr(unsafe.Pointer(&st)), 0); errno != 0 {
		return st, errno
	}
	return st, nil
}
