package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepare has the kernel end the command with this process, and hand this process the children of
// processes that end.
func prepare(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) // Linux 3.4
}

// awaitOrphans waits for the processes that the ended command started. It calls note if some run on.
func awaitOrphans(note func()) {
	for flags := syscall.WNOHANG; ; {
		switch pid, err := syscall.Wait4(-1, nil, flags, nil); {
		case err == syscall.EINTR:
		case err != nil: // no child is left
			return
		case pid == 0:
			note()
			flags = 0
		}
	}
}

// signalCommand sends a signal to all processes of the command. A process group of its own would take
// the terminal from it.
func signalCommand(process *os.Process, s os.Signal) {
	all := descendants(os.Getpid())
	for _, pid := range all {
		_ = syscall.Kill(pid, s.(syscall.Signal)) // it may have ended
	}
	if len(all) == 0 { // or this kernel does not list children
		_ = process.Signal(s)
	}
}

func descendants(pid int) (all []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list) // none, if the process has ended
		for word := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(word); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
