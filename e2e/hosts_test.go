package e2e

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A host is a machine of its own as far as the network goes: a namespace with an address, on a
// cable to ours.
type host struct {
	inside []string // the beginning of a command line that runs the rest there
	addr   string   // its address
	peer   string   // ours on the cable
	cable  string   // our end of it
}

// canHost reports whether this process may make network namespaces, which takes root, and
// CAP_NET_ADMIN and CAP_SYS_ADMIN in a container, and whether no firewall keeps them from it.
var canHost = sync.OnceValue(func() bool {
	h, end, err := startHost()
	defer end()
	return err == nil && h.reaches() == nil
})

// reaches reports whether a program on the host cannot connect to this one.
func (h *host) reaches() error {
	l, err := net.Listen("tcp", h.peer+":0")
	if err != nil {
		return err
	}
	defer l.Close()
	connect := "exec 3<>/dev/tcp/" + strings.Replace(l.Addr().String(), ":", "/", 1)
	return exec.Command(h.inside[0], append(h.inside[1:], "timeout", "30", "bash", "-c", connect)...).Run()
}

// newHost returns a host that ends with the test.
func newHost(t *testing.T) *host {
	t.Helper()
	h, end, err := startHost()
	t.Cleanup(end)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// startHost makes a host, which lasts until end, or until this process ends.
func startHost() (h *host, end func(), err error) {
	n, err := testserver.FreePort() // a port unused on all hosts of this machine
	if err != nil {
		return nil, func() {}, err
	}
	at := n % (1 << 15) * 4
	h = &host{addr: benchmarkAddr(at + 2), peer: benchmarkAddr(at + 1), cable: fmt.Sprint("leaf", n)}
	holder := exec.Command("unshare", "--net", "sh", "-c", "echo && exec cat")
	stdin, err := holder.StdinPipe() // whose end is cat's
	out, outErr := holder.StdoutPipe()
	if err = errors.Join(err, outErr); err == nil {
		err = holder.Start()
	}
	if err != nil {
		return nil, func() {}, err
	}
	end = func() { stdin.Close(); _ = holder.Wait() }
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		return nil, end, errors.New("make a network namespace: it is not allowed")
	}
	pid := strconv.Itoa(holder.Process.Pid)
	h.inside = []string{"nsenter", "--net=/proc/" + pid + "/ns/net"}
	return h, end, errors.Join(
		h.ip(false, "link add "+h.cable+" type veth peer name cable netns "+pid),
		h.ip(false, "addr add "+h.peer+"/30 dev "+h.cable), h.ip(false, "link set "+h.cable+" up"),
		h.ip(true, "addr add "+h.addr+"/30 dev cable"), h.ip(true, "link set cable up"), h.ip(true, "link set lo up"))
}

// benchmarkAddr returns an address of the network for benchmarks, 198.18.0.0/15.
func benchmarkAddr(n int) string {
	return fmt.Sprintf("198.%d.%d.%d", 18+n>>16, n>>8&255, n&255)
}

// ip runs the program of that name, here or on the host.
func (h *host) ip(inside bool, args string) error {
	line := append([]string{"ip"}, strings.Fields(args)...)
	if inside {
		line = append(h.inside, line...)
	}
	if out, err := exec.Command(line[0], line[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%q: %w: %s", line, err, out)
	}
	return nil
}

// vanish has all packets vanish that go to the host or come from it: they are for a card that
// neither end has.
func (h *host) vanish() error {
	const absent = " lladdr 02:00:00:00:00:99 nud permanent dev "
	return errors.Join(h.ip(false, "neigh replace "+h.addr+absent+h.cable), h.ip(true, "neigh replace "+h.peer+absent+"cable"))
}

// appear ends vanish.
func (h *host) appear() error {
	return errors.Join(h.ip(false, "neigh del "+h.addr+" dev "+h.cable), h.ip(true, "neigh del "+h.peer+" dev cable"))
}
