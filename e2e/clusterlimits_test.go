package e2e

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/internal/testserver"
)

// TestClusterLimits makes every server forget its mark of a store that loses writes. IDs then come
// twice, as documented, until an operator raises the counters, as documented.
func TestClusterLimits(t *testing.T) {
	testserver.Long(t)
	for _, name := range []string{"mariadb-pair", "postgres-pair", "redis-sentinel"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, name, labStores[name], leafBinary)
			c.forget()
			c.check()
		})
	}
}

// forget has the store lose writes, all servers forget, and then the counters raised.
func (c *cluster) forget() {
	c.awaitServed()
	l := c.store.loss
	c.must("cut the replica off", l.cut())
	cut := c.counter()
	until(c.t, 2*time.Minute, "granted what the replica does not know of", func() error {
		if granted := c.counter() - cut; granted <= int64(len(c.members))*labStock {
			return fmt.Errorf("%d were granted since, which the servers may still hold", granted)
		}
		return nil
	})
	limit := labcheck.Limit{Space: labTag, Forgot: map[string]string{}}
	for _, m := range c.members {
		m.now.Load().kill()
		limit.Before = append(limit.Before, m.now.Load().name)
		c.must("empty a disk", os.RemoveAll(m.data))
	}
	acknowledged := c.counter()
	c.must("fail over", l.over())
	limit.Event = fmt.Sprintf("a fail-over %v after the start", c.elapsed().Round(time.Second))
	limit.Lost = leaf.Range{Start: c.counter(), End: acknowledged}
	c.launchAll()
	for _, m := range c.members {
		limit.Forgot[m.now.Load().name] = "began with an emptied disk"
	}
	until(c.t, 2*time.Minute, "issued twice", func() error {
		if n, _ := c.history.Duplicates(nil); n == 0 {
			return errors.New("no ID was")
		}
		return nil
	})
	for _, m := range c.members {
		c.must("stop", m.quit())
	}
	c.raise()
	c.launchAll()
	c.awaitServed()
	c.well = c.elapsed()
	c.finish()
	c.result.Nemeses[failedOver]++
	c.result.Limit = "after a fail-over that lost writes no server remembered them, until the counters were raised"
	c.limits = append(c.limits, limit)
}
