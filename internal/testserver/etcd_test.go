package testserver_test

import (
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// version asks a member of an etcd for its version and reports whether it answered.
func version(t *testing.T, addr string) bool {
	t.Helper()
	client := http.Client{Timeout: 300 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get("http://" + addr + "/version")
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err == nil && resp.StatusCode == http.StatusOK
}

func TestEtcdMembers(t *testing.T) {
	c := testserver.Etcd(t, &testserver.EtcdOptions{Members: 3, UnsafeNoFsync: true})
	addrs := c.Endpoints()
	leader := c.Leader()
	if len(addrs) != 3 || leader < 0 {
		t.Fatalf("members %v, of which %d leads", addrs, leader)
	}
	if err := c.Kill(leader); err != nil {
		t.Fatal(err)
	}
	if version(t, addrs[leader]) {
		t.Error("a killed member answered")
	}
	if err := c.Restart(leader); err != nil {
		t.Fatal(err)
	}
	if !version(t, addrs[leader]) {
		t.Error("a restarted member does not answer on its port")
	}
	if err := c.Pause(1); err != nil {
		t.Fatal(err)
	}
	if version(t, addrs[1]) {
		t.Error("a paused member answered")
	}
	if err := c.Resume(1); err != nil {
		t.Fatal(err)
	}
	if !version(t, addrs[1]) {
		t.Error("a resumed member did not answer")
	}
}

func TestEtcdLeavesNothing(t *testing.T) {
	c, err := testserver.StartEtcd(&testserver.EtcdOptions{UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Metric(0, "etcd_server_has_leader"); err != nil {
		t.Error(err)
	}
	c.Close()
	if _, err := os.Stat(c.Dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", c.Dir, err)
	}
}
