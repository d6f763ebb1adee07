package sdnotify_test

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leaf-id/leaf/internal/sdnotify"
)

// listen returns what arrives at a socket, as systemd would see it.
func listen(t *testing.T, name string) func() string {
	t.Helper()
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return func() string {
		t.Helper()
		buf := make([]byte, 4096)
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := conn.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		return string(buf[:n])
	}
}

func env(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

func TestMessages(t *testing.T) {
	for _, name := range []string{filepath.Join(t.TempDir(), "notify"), "@leaf-test-" + strconv.Itoa(os.Getpid())} {
		read := listen(t, name)
		n, err := sdnotify.FromEnv(env(map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": strconv.Itoa(os.Getpid())}))
		if err != nil {
			t.Fatal(err)
		}
		if n.Watchdog() != 3*time.Second {
			t.Errorf("watchdog: %v", n.Watchdog())
		}
		for _, m := range []struct {
			send func()
			want string
		}{
			{func() { n.Ready("serving\nIDs") }, "READY=1\nSTATUS=serving IDs"},
			{n.Alive, "WATCHDOG=1"},
			{func() { n.Status("degraded") }, "STATUS=degraded"},
			{n.Stopping, "STOPPING=1\nSTATUS=stopping"},
		} {
			m.send()
			if got := read(); got != m.want {
				t.Errorf("%s: got %q, want %q", name, got, m.want)
			}
		}
		before := now(t)
		n.Reloading()
		m := regexp.MustCompile(`^RELOADING=1\nMONOTONIC_USEC=(\d+)$`).FindStringSubmatch(read())
		if m == nil {
			t.Fatal("no RELOADING with its time")
		}
		if at, _ := strconv.ParseInt(m[1], 10, 64); at < before || at > now(t) {
			t.Errorf("reloading at %d, which is not the time of CLOCK_MONOTONIC", at)
		}
	}
}

// A full socket holds nothing up, and a replaced one still gets the messages.
func TestFullSocket(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	full, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	n, err := sdnotify.FromEnv(env(map[string]string{"NOTIFY_SOCKET": name}))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for err == nil {
		if err = conn.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err == nil {
			_, err = conn.Write([]byte("STATUS=x"))
		}
	}
	sent := make(chan struct{})
	go func() { n.Stopping(); close(sent) }()
	select {
	case <-sent:
	case <-time.After(time.Minute):
		t.Fatal("it waits for what does not read")
	}
	full.Close()
	if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	read := listen(t, name)
	n.Alive()
	if got := read(); got != "WATCHDOG=1" {
		t.Errorf("%q", got)
	}
}

func now(t *testing.T) int64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return ts.Nano() / 1000
}

func TestNotAsked(t *testing.T) {
	n, err := sdnotify.FromEnv(env(nil))
	if n != nil || err != nil {
		t.Errorf("%v, %v without NOTIFY_SOCKET", n, err)
	}
	n.Ready("x") // a nil Notifier does nothing
	if _, err := sdnotify.FromEnv(env(map[string]string{"NOTIFY_SOCKET": filepath.Join(t.TempDir(), "none")})); err == nil {
		t.Error("no error for a socket that is not there")
	}
	name := filepath.Join(t.TempDir(), "notify")
	listen(t, name)
	other, err := sdnotify.FromEnv(env(map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}))
	if err != nil || other.Watchdog() != 0 {
		t.Errorf("the watchdog of another process: %v, %v", other.Watchdog(), err)
	}
}
