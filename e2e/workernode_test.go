package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A nodeTable is a table WORKER_NODE with servers.
type nodeTable struct {
	t             *testing.T
	database, url string
	program       []string
	ids           drivertest.Ranges
}

func newNodeTable(t *testing.T, program ...string) *nodeTable {
	database := mariadb.NewDatabase(t)
	n := &nodeTable{t: t, database: database, url: mariadb.URL(database) + "?layout=worker_node", program: program}
	initWorkers(t, n.url)
	return n
}

// start starts a server whose layout has that many worker bits.
func (n *nodeTable) start(workerBits int) *server {
	text := fmt.Sprintf("segment: {enable: false}\nuid: {layout: shop, epoch: 2026-01-01T00:00:00Z, time_bits: 31, worker_bits: %d, seq_bits: %d}\n",
		workerBits, 32-workerBits)
	args := serveArgs([]string{"--config", config(n.t, "leaf.yaml", text), "--data", filepath.Join(n.t.TempDir(), "data"), "--workers", n.url})
	return serveBy(n.t, slices.Concat(n.program, args)...)
}

const otherBits = "IDs were issued under that name as"

// take adds some IDs of a server. The error has otherBits in it if the server is refused.
func (n *nodeTable) take(s *server) (err error) {
	n.t.Helper()
	until(n.t, 30*time.Second, "serving or refused", func() error {
		ranges, takeErr := s.takeOf("uid", "x", 5000)
		if err = takeErr; err == nil {
			n.ids.Add(ranges...)
		}
		if err != nil && !strings.Contains(err.Error(), otherBits) {
			return err
		}
		return nil
	})
	return err
}

// mustTake is take for a server that may not refuse.
func (n *nodeTable) mustTake(s *server) {
	n.t.Helper()
	if err := n.take(s); err != nil {
		n.t.Fatal(err)
	}
}

func (n *nodeTable) refused(s *server, when string) {
	n.t.Helper()
	if err := n.take(s); err == nil {
		n.t.Errorf("%s: other bits were not refused", when)
	}
	s.stop()
}

// pass waits until the clock has passed the time of every ID so far.
func (n *nodeTable) pass() {
	last := int64(0)
	for _, r := range n.ids.Sorted() {
		last = max(last, r.End-1)
	}
	end := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(last>>32+1) * time.Second)
	time.Sleep(time.Until(end))
}

// A server with other bits under the name of a layout is refused next to one that runs.
func TestWorkerNodeOtherBits(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	if err := workerNodeOtherBits(t, leafBinary); err != nil {
		t.Error(err)
	}
}

// workerNodeOtherBits reports an ID that both servers issued.
func workerNodeOtherBits(t *testing.T, program ...string) error {
	n := newNodeTable(t, program...)
	first := n.start(18)
	n.mustTake(first)
	second := n.start(19)
	for range 10 {
		n.mustTake(first)
		if n.take(second) != nil {
			return n.ids.Check()
		}
	}
	return n.ids.Check()
}

// The recipe of docs/uid-mode.md for more worker bits: stop all servers, wait, drop leaf_layout,
// start. A step left out or done in another order leads to a refusal, or does no harm.
func TestWorkerNodeMoreWorkerBits(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	n := newNodeTable(t, leafBinary)
	drop := func() { mariadb.Exec(t, n.database, "DROP TABLE leaf_layout") }
	servers := []*server{n.start(18), n.start(18)}
	for _, s := range servers {
		n.mustTake(s)
	}
	n.refused(n.start(20), "before the table is dropped, while servers run")
	for _, s := range servers {
		s.stop()
	}
	n.refused(n.start(20), "before the table is dropped")
	drop()
	old := n.start(18) // a forgotten server: the old bits hold again
	n.mustTake(old)
	n.refused(n.start(20), "after a start with the old bits")
	old.stop()
	n.pass()
	drop()
	servers = []*server{n.start(20), n.start(20)}
	for _, s := range servers {
		n.mustTake(s)
	}
	n.refused(n.start(18), "the old bits")
	for _, s := range servers {
		n.mustTake(s)
	}
	checkRanges(t, &n.ids, 7*5000)
}
