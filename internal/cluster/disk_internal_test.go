package cluster

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
)

// disks are members that share a leader, each with its disk.
type disks struct {
	sync.Mutex
	leader types.ID
	took   map[types.ID]time.Duration // time of each sync; 0: no sync
	moves  []time.Time
	all    map[types.ID]*diskWatch
}

// startDisks starts members in a bubble of [synctest]; the first one leads.
func startDisks(t *testing.T, all ...time.Duration) *disks {
	d := &disks{leader: 1, took: make(map[types.ID]time.Duration), all: make(map[types.ID]*diskWatch)}
	begin := time.Now()
	for i, took := range all {
		id := types.ID(i + 1)
		var count uint64
		var seconds float64
		last := begin
		d.took[id] = took
		d.all[id] = &diskWatch{
			syncs: func() (uint64, float64) {
				d.Lock()
				defer d.Unlock()
				if took := d.took[id]; took > 0 {
					n := time.Since(last) / took
					count, seconds = count+uint64(n), seconds+(n*took).Seconds()
				}
				last = time.Now()
				return count, seconds
			},
			leads: func() (types.ID, types.ID) {
				d.Lock()
				defer d.Unlock()
				return d.leader, id
			},
			voters: func(context.Context) (others []voter) {
				for other, w := range d.all {
					if other != id {
						others = append(others, voter{other, other.String(), time.Duration(w.mean.Load())})
					}
				}
				return others
			},
			move: func(_ context.Context, heir types.ID) error {
				d.Lock()
				defer d.Unlock()
				d.leader, d.moves = heir, append(d.moves, time.Now())
				return nil
			},
			log: slog.New(slog.DiscardHandler),
		}
	}
	for id, w := range d.all {
		go func() {
			time.Sleep(time.Duration(id) * time.Millisecond) // one after the other
			w.run(t.Context(), nil)
		}()
	}
	return d
}

func (d *disks) set(id types.ID, took time.Duration) {
	d.Lock()
	defer d.Unlock()
	d.took[id] = took
}

// A leader with a slow disk hands over once, to the member with the fastest one.
func TestSlowLeaderHandsOver(t *testing.T) {
	const fast, faster, slow = 20 * time.Millisecond, 10 * time.Millisecond, 1500 * time.Millisecond
	for _, c := range []struct {
		name   string
		sync   []time.Duration
		leader types.ID // in the end
	}{
		{"all are fast", []time.Duration{fast, fast, faster}, 1},
		{"the leader is slow", []time.Duration{slow, fast, faster}, 3},
		{"the leader and the fastest but one are slow", []time.Duration{slow, slow, fast}, 3},
		{"all are slow", []time.Duration{slow, slow, slow}, 1},
		{"all are slow, one less", []time.Duration{slow, slow, 550 * time.Millisecond}, 1},
		{"the leader is little slower", []time.Duration{550 * time.Millisecond, 450 * time.Millisecond, 450 * time.Millisecond}, 1},
		{"a follower is slow", []time.Duration{fast, slow, fast}, 1},
		{"nothing is known of the others", []time.Duration{slow, 0, 0}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := startDisks(t, c.sync...)
				begin := time.Now()
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				want := 0
				if c.leader != 1 {
					want = 1
				}
				if d.leader != c.leader || len(d.moves) != want {
					t.Fatalf("member %d leads after %d moves, want %d after %d", d.leader, len(d.moves), c.leader, want)
				}
				if want == 1 && (d.moves[0].Sub(begin) > 15*time.Second || d.all[1].moved.Load() != 1) {
					t.Errorf("moved after %v, counted %d", d.moves[0].Sub(begin), d.all[1].moved.Load())
				}
			})
		})
	}
}

// The leadership does not follow disks that turn slow by turns, and a slow spell moves nothing.
func TestSlowDisksDoNotPassLeadershipToAndFro(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := startDisks(t, time.Millisecond, time.Millisecond, time.Millisecond)
		time.Sleep(time.Minute)
		d.set(1, time.Second)
		time.Sleep(2 * diskEvery)
		d.set(1, time.Millisecond)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(d.moves) > 0 {
			t.Errorf("a slow spell of two rounds moved the leader")
		}
		begin := time.Now()
		for time.Since(begin) < time.Hour { // the leader is slow
			d.Lock()
			for id := range d.took {
				d.took[id] = time.Millisecond
			}
			d.took[d.leader] = time.Second
			d.Unlock()
			time.Sleep(diskEvery / 2)
		}
		synctest.Wait()
		for i := 1; i < len(d.moves); i++ {
			if gap := d.moves[i].Sub(d.moves[i-1]); gap < handOverGap {
				t.Errorf("moved again after %v", gap)
			}
		}
		if len(d.moves) < 10 {
			t.Errorf("%d moves in an hour", len(d.moves))
		}
	})
}
