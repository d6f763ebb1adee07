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

// A Notifier tells. A nil Notifier does nothing. Its methods are safe for concurrent use.
type Notifier struct {
	conn     *net.UnixConn
	watchdog time.Duration
}

// FromEnv returns the Notifier that the environment asks for, nil if it asks for none.
func FromEnv(getenv func(string) string) (*Notifier, error) {
	path := getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil, nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"}) // "@NAME" is abstract
	if err != nil {
		return nil, fmt.Errorf("connect to NOTIFY_SOCKET: %w", err)
	}
	n := &Notifier{conn: conn}
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

func (n *Notifier) send(lines ...string) {
	if n == nil {
		return
	}
	for i, line := range lines {
		lines[i] = strings.ReplaceAll(line, "\n", " ")
	}
	_, _ = n.conn.Write([]byte(strings.Join(lines, "\n"))) // who does not listen misses nothing
}

// Close closes the connection.
func (n *Notifier) Close() {
	if n != nil {
		_ = n.conn.Close()
	}
}
