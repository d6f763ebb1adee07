package cluster_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf/internal/cluster"
)

// A teller counts the key "counter" up through several members, and finds numbers that came twice.
type teller struct {
	mu    sync.Mutex
	seen  map[int]string // by which member
	last  map[string]time.Time
	twice []string
}

// count takes numbers from a member until ctx ends.
func (c *teller) count(ctx context.Context, n *node) {
	for ctx.Err() == nil {
		got, err := increment(ctx, n)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		c.mu.Lock()
		if by := c.seen[got]; by != "" {
			c.twice = append(c.twice, fmt.Sprintf("%d of %s and %s", got, by, n.addr))
		}
		c.seen[got], c.last[n.addr] = n.addr, time.Now()
		c.mu.Unlock()
	}
}

// increment returns the number it takes, or an error if another caller took that.
func increment(ctx context.Context, n *node) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	resp, err := n.member.Client().Get(ctx, "counter")
	if err != nil {
		return 0, err
	}
	old := string(resp.Kvs[0].Value)
	value, err := strconv.Atoi(old)
	if err != nil {
		return 0, err
	}
	tx, err := n.member.Client().Txn(ctx).If(clientv3.Compare(clientv3.Value("counter"), "=", old)).
		Then(clientv3.OpPut("counter", strconv.Itoa(value+1))).Commit()
	if err == nil && !tx.Succeeded {
		err = fmt.Errorf("%s: another caller was first", n.addr)
	}
	return value, err
}

// since awaits a number that each member has given after a time.
func (c *teller) since(t *testing.T, begin time.Time, all []*node) {
	t.Helper()
	await(t, "counting", func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, n := range all {
			if !c.last[n.addr].After(begin) {
				return fmt.Errorf("%s counts no more", n.addr)
			}
		}
		return nil
	})
}

// sizes returns the databases of the members, by their own word.
func sizes(t *testing.T, all []*node) (found []cluster.Database) {
	t.Helper()
	for _, n := range all {
		status, err := admin(t, n).Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, status.Database)
	}
	return found
}

const smallQuota = 8 << 20

// fill overwrites a key until the file of a member has a size, or the cluster refuses writes. It leaves
// etcd time to commit: the size of the file is known only then.
func fill(t *testing.T, n *node, size int64) (refused error) {
	t.Helper()
	value := strings.Repeat("x", 16<<10)
	for sizes(t, []*node{n})[0].Size < size {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := n.member.Client().Put(ctx, "filler", value)
		cancel()
		if err != nil && strings.Contains(err.Error(), "is full") {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
	return nil
}

// Files of members grow to the quota, as history does. Members with unused space are defragmented
// while counters go on, and the cluster accepts writes again by itself once the members have room.
func TestMembersStayBelowTheQuota(t *testing.T) {
	t.Parallel()
	all := nodes(t, 3)
	for _, n := range all {
		n.config.Quota = smallQuota
	}
	grow(t, all)
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	numbers := &teller{seen: make(map[int]string), last: make(map[string]time.Time)}
	for _, n := range all {
		clients.Go(func() { numbers.count(ctx, n) })
	}
	for _, quota := range []int64{smallQuota / 100 * 84, smallQuota * 2} {
		err := fill(t, all[0], quota)
		if refused := quota > smallQuota; refused != (err != nil) {
			t.Fatalf("filled to %d of %d bytes: %v", quota, smallQuota, err)
		}
		if err == nil {
			compact(t, all[0])
		}
		begin := time.Now()
		await(t, "room", func() error {
			for i, db := range sizes(t, all) {
				if db.Size == 0 || db.Size > smallQuota/2 {
					return fmt.Errorf("%s has %+v", all[i].addr, db)
				}
			}
			return nil
		})
		t.Logf("filled to %d bytes (%v), room after %v", quota, err, time.Since(begin).Round(time.Millisecond))
		numbers.since(t, time.Now(), all)
	}
	cancel()
	clients.Wait()
	t.Logf("%d numbers", len(numbers.seen))
	if len(numbers.twice) > 0 {
		t.Errorf("numbers came twice: %v", numbers.twice)
	}
}

func compact(t *testing.T, n *node) {
	t.Helper()
	resp, err := n.member.Client().Get(t.Context(), "counter")
	if err == nil {
		_, err = n.member.Client().Compact(t.Context(), resp.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err != nil {
		t.Fatal(err)
	}
}
