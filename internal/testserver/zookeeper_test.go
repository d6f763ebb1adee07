package testserver_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// srvr asks a ZooKeeper for its state and reports whether it answered.
func srvr(t *testing.T, addr string) bool {
	t.Helper()
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(300 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("srvr")); err != nil {
		return false
	}
	_, err = conn.Read(make([]byte, 1))
	return err == nil
}

func TestZooKeeperKeepsPortAndDataOverKillAndStop(t *testing.T) {
	s := testserver.ZooKeeper(t)
	addr := s.Addr()
	for name, end := range map[string]func() error{"kill": s.Kill, "stop": s.Stop} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		if srvr(t, addr) {
			t.Fatalf("after %s the server still answers", name)
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		if s.Addr() != addr || !srvr(t, addr) {
			t.Fatalf("after %s the server does not answer at %s again but at %s", name, addr, s.Addr())
		}
	}
	logs, err := filepath.Glob(filepath.Join(s.Dir, "data", "version-2", "*"))
	if err != nil || len(logs) == 0 {
		t.Errorf("no data in %s, %v", s.Dir, err)
	}
}

func TestZooKeeperPause(t *testing.T) {
	s := testserver.ZooKeeper(t)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	if srvr(t, s.Addr()) {
		t.Error("a paused server answered")
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if !srvr(t, s.Addr()) {
		t.Error("a resumed server did not answer")
	}
}

func TestZooKeeperLeavesNothing(t *testing.T) {
	s, err := testserver.StartZooKeeper()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if _, err := os.Stat(s.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", s.Dir, err)
	}
}
