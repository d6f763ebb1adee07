package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// nobody is the user for servers that refuse to run as root.
const nobody = "nobody"

// unprivileged returns a command that runs as nobody if the tests run as root. The change of user
// makes the kernel forget the signal at the parent's end, so setpriv sets it again.
func unprivileged(binary string, args ...string) (*exec.Cmd, error) {
	if os.Geteuid() != 0 {
		return exec.Command(binary, args...), nil
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		return nil, fmt.Errorf("run %s: it refuses to run as root: install util-linux: %w", binary, err)
	}
	who, err := user.Lookup(nobody)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", binary, err)
	}
	as := []string{"--reuid=" + who.Uid, "--regid=" + who.Gid, "--clear-groups", "--pdeathsig=QUIT", "--", binary}
	return exec.Command(setpriv, append(as, args...)...), nil
}

// privateDir makes a temporary folder for the user of [unprivileged]. The path of a socket must be
// shorter than 108 bytes, so t.TempDir does not serve.
func privateDir(name string) (string, error) {
	dir, err := os.MkdirTemp("", name)
	if err != nil {
		return "", err
	}
	if err := give(dir); err != nil {
		return "", err
	}
	return dir, nil
}

// give makes the user of [unprivileged] the owner of a file.
func give(path string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	who, err := user.Lookup(nobody)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil {
		return err
	}
	return os.Chown(path, uid, gid)
}

// childrenOf returns the processes that a process has started.
func childrenOf(pid int) ([]int, error) {
	out, err := exec.Command("ps", "-o", "pid=", "--ppid", strconv.Itoa(pid)).Output()
	if err != nil && len(out) > 0 {
		return nil, fmt.Errorf("list the children of a server: %w", err)
	}
	var pids []int
	for field := range strings.FieldsSeq(string(out)) {
		child, err := strconv.Atoi(field)
		if err != nil {
			return nil, fmt.Errorf("list the children of a server: %w", err)
		}
		pids = append(pids, child)
	}
	return pids, nil
}
