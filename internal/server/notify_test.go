package server_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/sdnotify"
	"github.com/leaf-id/leaf/internal/server"
)

// systemd is told when the server serves, reloads and stops, and meanwhile that it is alive.
func TestNotify(t *testing.T) {
	name := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	env := map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000"}
	notify, err := sdnotify.FromEnv(func(key string) string { return env[key] })
	if err != nil {
		t.Fatal(err)
	}
	defer notify.Close()
	if err := conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	await := func(start string) {
		t.Helper()
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("%s: %v", start, err)
			}
			if strings.HasPrefix(string(buf[:n]), start) {
				return
			}
		}
	}
	r := run(t, nil, func(o *server.Options) { o.Notify = notify })
	await("READY=1\nSTATUS=")
	await("WATCHDOG=1")
	await("WATCHDOG=1")
	if err := r.server.Reload(); err != nil {
		t.Fatal(err)
	}
	await("RELOADING=1\nMONOTONIC_USEC=")
	await("READY=1\nSTATUS=ready on " + r.addr)
	r.stop()
	await("STOPPING=1")
	r.wantStop(t)
}
