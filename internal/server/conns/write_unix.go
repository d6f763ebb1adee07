//go:build unix

package conns

import "syscall"

// writeOnce writes as much of p as the system takes without a wait.
func writeOnce(fd uintptr, p []byte) (n int, err error) {
	for {
		n, err = syscall.Write(int(fd), p)
		switch err {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			return 0, nil
		}
		return max(n, 0), err
	}
}
