package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/sdnotify"
	"github.com/leaf-id/leaf/internal/server"
)

// A systemd plays the part of systemd.
type systemd struct{ *net.UnixConn }

func newSystemd(t *testing.T) (systemd, *sdnotify.Notifier) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	env := map[string]string{"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "20000"}
	notify, err := sdnotify.FromEnv(func(key string) string { return env[key] })
	if err != nil {
		t.Fatal(err)
	}
	return systemd{conn}, notify
}

// next returns the next message within limit, or "".
func (s systemd) next(t *testing.T, limit time.Duration) string {
	t.Helper()
	if err := s.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := s.Read(buf)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// await drops messages up to one that begins so.
func (s systemd) await(t *testing.T, start string) {
	t.Helper()
	for message := ""; !strings.HasPrefix(message, start); {
		if message = s.next(t, time.Minute); message == "" {
			t.Fatalf("no %s", start)
		}
	}
}

// The server tells systemd when it serves, reloads and stops, and meanwhile that it is alive.
func TestNotify(t *testing.T) {
	systemd, notify := newSystemd(t)
	await := func(start string) {
		t.Helper()
		systemd.await(t, start)
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
}

var errAway = errors.New("connection refused")

// A reload while the port is not open yet does not make systemd take the server for ready.
func TestReloadBeforeItServes(t *testing.T) {
	systemd, notify := newSystemd(t)
	away := func(drivertest.Call) drivertest.Fault { return drivertest.Fault{Before: errAway} }
	r := run(t, away, func(o *server.Options) { o.Notify, o.Config.StartWait = notify, time.Hour })
	if err := r.server.Reload(); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if got := systemd.next(t, time.Minute); !strings.HasPrefix(got, "STOPPING=1") {
		t.Errorf("the first message is %q", got)
	}
	r.wantStop(t)
}

// A stuck handler blocks on one message, which a generator logs with its lock held.
type stuck struct {
	slog.Handler
	on      string
	entered chan struct{}
	leave   chan struct{}
}

func (s *stuck) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == s.on {
		s.entered <- struct{}{}
		<-s.leave
	}
	return s.Handler.Handle(ctx, r)
}

// The watchdog is fed while the store is away, and not while a generator hangs.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	systemd, notify := newSystemd(t)
	log := &stuck{Handler: slog.NewTextHandler(io.Discard, nil), on: "store call failed", entered: make(chan struct{}), leave: make(chan struct{})}
	var away atomic.Bool
	r := run(t, func(drivertest.Call) (f drivertest.Fault) {
		if away.Load() {
			f.Before = errAway
		}
		return f
	}, func(o *server.Options) { o.Notify, o.Logger = notify, slog.New(log) })
	r.want(t, "/api/segment/get/order", 200, "1")
	away.Store(true)
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		for range 100 { // more than it holds
			_, _, _ = r.get("/api/segment/get/order")
		}
	}()
	select {
	case <-log.entered:
	case <-time.After(time.Minute):
		t.Fatal("no call of the store has failed")
	}
	silent := func() bool { return !strings.HasPrefix(systemd.next(t, time.Second), "WATCHDOG=1") }
	until(t, "silent", silent)
	close(log.leave)
	systemd.await(t, "WATCHDOG=1")
	systemd.await(t, "WATCHDOG=1")
	<-asked
	r.stop()
	r.wantStop(t)
}
