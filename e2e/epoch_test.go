package e2e

import (
	"context"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// An oldSnowflake makes IDs of 41, 10 and 12 bits in a process, as MyBatis-Plus and CosId do.
type oldSnowflake struct {
	epoch, worker int64
	highest       *atomic.Int64 // of all processes

	mu       sync.Mutex
	last     int64
	sequence int64
}

func (o *oldSnowflake) nextID(context.Context) (int64, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now().UnixMilli()
	if now <= o.last {
		now = o.last
		if o.sequence = (o.sequence + 1) & 4095; o.sequence == 0 {
			now++
		}
	} else {
		o.sequence = 0
	}
	o.last = now
	id := (now-o.epoch)<<22 | o.worker<<12 | o.sequence
	for high := o.highest.Load(); id > high && !o.highest.CompareAndSwap(high, id); high = o.highest.Load() {
	}
	return id, nil
}

// yamlOf returns the first block of a page that is marked yaml.
func yamlOf(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, block, ok := strings.Cut(string(text), "```yaml\n")
	block, _, _ = strings.Cut(block, "```")
	if !ok {
		t.Fatalf("%s has no block of yaml", page)
	}
	return block
}

// The recipes for snowflake IDs: an epoch ten years earlier. The old processes and our server have
// the same worker IDs.
func TestFromOtherSnowflakes(t *testing.T) {
	for page, epoch := range map[string]int64{
		"migrating-from-mybatis-plus.md": 1288834974657,
		"migrating-from-cosid.md":        1577203200000,
	} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			var highest atomic.Int64
			processes := make([]*oldSnowflake, 4)
			for i := range processes {
				processes[i] = &oldSnowflake{epoch: epoch, worker: int64(i), highest: &highest}
			}
			before := func(c int) taker { return paced(processes[c].nextID) }
			m := startMovers(t, len(processes), before)
			s := serve(t, "--config", config(t, "leaf.yaml", "segment: {enable: false}\n"+yamlOf(t, page)), "--data", t.TempDir(), "--workers", newRegistry(t))
			lowest := s.awaitSnowflake(time.Minute)
			// The old processes continue while the first ID is on its way, so a few milliseconds may be missing.
			if ahead := time.Duration(lowest>>22-highest.Load()>>22) * time.Millisecond; ahead < 3651*24*time.Hour || ahead > 3654*24*time.Hour {
				t.Errorf("our first ID is %v after the old ones, want ten years", ahead)
			}
			m.seen.Shard().Add(lowest)
			m.move(s.next10("/api/snowflake/get/orders"))
			m.move(before)
			if highest.Load() >= lowest {
				t.Errorf("an old ID, %d, is above our first one, %d", highest.Load(), lowest)
			}
			m.finish()
		})
	}
}
