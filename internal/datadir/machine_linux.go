package datadir

import (
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/leaf-id/leaf/worker"
)

// LockMachine locks a name against all other processes of this machine, of any user and with any
// data directory, until the caller closes the result or the process ends. It is a socket in the
// abstract namespace, which belongs to the network namespace: containers with a network of their
// own count as other machines.
func LockMachine(name string) (io.Closer, error) {
	l, err := net.Listen("unix", "@leaf/"+name)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is %w on this machine", name, worker.ErrInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("lock %s on this machine: %w: allow unix sockets (AF_UNIX)", name, err)
	}
	return l, nil
}
