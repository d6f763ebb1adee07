// Package sdnotify tells systemd, or what else has set NOTIFY_SOCKET, how a service is doing. See
// sd_notify(3).
package sdnotify

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"time"
)

// A Notifier tells. A nil Notifier does nothing. Its methods are safe for concurrent use, and
// return within a second, whether anything listens or not.
type Notifier struct {
	addr     *net.UnixAddr
	watchdog time.Duration
}

// sendTimeout is how long a message may take: the socket is full while what listens does not read.
const sendTimeout = time.Second

// FromEnv returns the Notifier for the environment, or nil.
func FromEnv(getenv func(string) string) (*Notifier, error) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	n := &Notifier{addr: &net.UnixAddr{Name: path, Net: "unixgram"}} // "@NAME" is abstract
	conn, err := net.DialUnix("unixgram", nil, n.addr)
	if err != nil {
		return nil, fmt.Errorf("connect to NOTIFY_SOCKET: %w", err)
	}
	_ = conn.Close()
	usec, err := strconv.ParseInt(getenv("WATCHDOG_USEC"), 10, 64)
	pid := getenv("WATCHDOG_PID")
	if err == nil && usec > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(usec) * time.Microsecond
	}
	return n, nil
}

// Watchdog returns within which time [Notifier.Alive] must be called again and again; 0: never.
func (n *Notifier) Watchdog() time.Duration {
	if n == nil {
		return 0
	}
	return n.watchdog
}

// Ready says that the service serves, after its start or a reload; status is for people.
func (n *Notifier) Ready(status string) { n.send("READY=1", "STATUS="+status) }

// Reloading says that the configuration is being read again.
func (n *Notifier) Reloading() {
	n.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(monotonic(), 10))
}

// Stopping says that the service is about to end.
func (n *Notifier) Stopping() { n.send("STOPPING=1", "STATUS=stopping") }

// Alive says that the service works.
func (n *Notifier) Alive() { n.send("WATCHDOG=1") }

// Status tells people.
func (n *Notifier) Status(status string) { n.send("STATUS=" + status) }

// send sends a message; without a listener it is lost. It connects each time, because somebody may
// have replaced the socket.
func (n *Notifier) send(lines ...string) {
	if n == nil {
		return
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "\n", " ")
	}
	conn, err := net.DialUnix("unixgram", nil, n.addr)
	if err != nil {
		return
	}
	defer conn.Close()
	if conn.SetWriteDeadline(time.Now().Add(sendTimeout)) == nil {
		_, _ = conn.Write([]byte(strings.Join(lines, "\n")))
	}
}
