package testserver

import "syscall"

// dieWithParent has the kernel end a server whose test binary was killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
