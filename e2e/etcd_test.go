package e2e

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// leader returns the member that leads.
func leader(t testing.TB, c *testserver.EtcdCluster) (leader int) {
	t.Helper()
	until(t, 20*time.Second, "led", func() error {
		if leader = c.Leader(); leader < 0 {
			return errors.New("no member leads")
		}
		return nil
	})
	return leader
}

// Each of three members is killed in turn, the leader is killed, and the leader is frozen, while
// three servers take ranges and hold worker IDs. No ID comes twice. An event silences a server
// until the members have elected another leader, half a second to a second here. A server that waits
// for a lost member notices after a second, and asks another member.
func TestEtcdMembersFail(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	most := figure(20*time.Second, 4*time.Second) // on a busy machine
	c := testserver.Etcd(t, &testserver.EtcdOptions{Members: 3})
	f := startFleet(t, func(int) string { return c.URL("e2e") })
	suffer := func(event string, member int, do, undo func(int) error) {
		t.Helper()
		if member == leader(t, c) {
			event += ", the leader,"
		}
		for _, step := range []func(int) error{do, undo} {
			if err := step(member); err != nil {
				t.Fatal(err)
			}
			f.all()
		}
		f.report(fmt.Sprintf("m%d %s and back", member, event))
	}
	for end := time.Now().Add(figure(0, 2*time.Minute)); ; {
		for i := range 3 {
			suffer("killed", i, c.Kill, c.Restart)
		}
		suffer("killed", leader(t, c), c.Kill, c.Restart)
		suffer("frozen", leader(t, c), c.Pause, c.Resume)
		if time.Now().After(end) {
			break
		}
	}
	f.stop()
	f.check()
	for _, s := range f.servers {
		s.stop()
	}
	if f.worst > most {
		t.Errorf("a server was silent for %v", f.worst)
	}
}
