//go:build !linux

package testserver

import "syscall"

// dieWithParent: only Linux can tie a process to its parent.
func dieWithParent() *syscall.SysProcAttr { return nil }
