package e2e

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// A pulse tells how long nothing came in.
type pulse struct {
	mu      sync.Mutex
	last    time.Time
	longest time.Duration
	failed  int64
}

// beat takes in a call.
func (p *pulse) beat(ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !ok {
		p.failed++
		return
	}
	now := time.Now()
	p.longest = max(p.longest, now.Sub(p.last))
	p.last = now
}

func (p *pulse) latest() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last
}

// take returns the longest silence, and the calls that failed, since it was called last.
func (p *pulse) take() (longest time.Duration, failed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	longest, failed = max(p.longest, time.Since(p.last)), p.failed
	p.longest, p.failed = 0, 0
	return longest, failed
}

// A fleet is three servers on one store, with clients that ask each of them for IDs of
// every tag, and for time-based ones, all the time.
type fleet struct {
	t       testing.TB
	servers []*server

	tally
	ids   map[string]*drivertest.IDs // by tag
	times drivertest.Ranges

	tags, clock       []*pulse // of the IDs of tags, and of the time-based ones, by server
	whole             pulse    // of the tags, of all servers
	worst, worstWhole time.Duration
}

const timesAtOnce = 500 // time-based IDs of one call

// startFleet makes a store and a registry and starts the servers, with the URL of each. Their stock
// is small, so that callers notice the store's faults at once.
func startFleet(t testing.TB, url func(server int) string) *fleet {
	t.Helper()
	f := &fleet{t: t, ids: make(map[string]*drivertest.IDs)}
	var tags []segment.Tag
	for _, name := range []string{"order", "user", "invoice"} {
		tags = append(tags, segment.Tag{Name: name, MaxID: 1, Step: 50})
		f.ids[name] = new(drivertest.IDs)
	}
	initBoth(t, url(0), tags)
	file := config(t, "leaf.yaml", "segment: {max_stock: 200}\n")
	for i := range 3 {
		s := serve(t, "--config", file, "--store", url(i), "--data", filepath.Join(t.TempDir(), "data"))
		s.awaitSnowflake(10 * time.Second)
		f.servers = append(f.servers, s)
	}
	f.startClients()
	return f
}

func (f *fleet) startClients() {
	ctx := f.begin(f.t)
	f.whole.last = time.Now()
	for _, s := range f.servers {
		tags, clock := &pulse{last: time.Now()}, &pulse{last: time.Now()}
		f.tags, f.clock = append(f.tags, tags), append(f.clock, clock)
		for tag, seen := range f.ids {
			shard := seen.Shard()
			f.client(ctx, func() (int, error) {
				ids, err := s.ids(tag, 20)
				shard.Add(ids...)
				return len(ids), err
			}, tags, &f.whole)
		}
		f.client(ctx, func() (int, error) {
			ranges, err := s.take("x", timesAtOnce)
			f.times.Add(ranges...)
			return timesAtOnce, err
		}, clock)
	}
}

// client repeats its call up to a hundred times a second, a small load for the machine.
func (f *fleet) client(ctx context.Context, ask func() (int, error), pulses ...*pulse) {
	f.wg.Go(func() {
		pace := time.NewTicker(10 * time.Millisecond)
		defer pace.Stop()
		for ; ctx.Err() == nil; <-pace.C {
			n, err := ask()
			for _, p := range pulses {
				p.beat(err == nil)
			}
			if err != nil {
				f.fail(err)
				continue
			}
			f.count.Add(int64(n))
		}
	})
}

// report logs the effect of an event on the clients, up to now.
func (f *fleet) report(event string) {
	f.t.Helper()
	var each []string
	for i, p := range f.tags {
		silence, failed := p.take()
		clock, late := f.clock[i].take()
		f.worst = max(f.worst, silence)
		each = append(each, fmt.Sprintf("%v (%d failed; time-based %v)", millis(silence), failed, millis(clock)))
		if late > 0 {
			f.t.Errorf("%s: %d calls for time-based IDs failed, which need no registry for half an hour", event, late)
		}
	}
	whole, _ := f.whole.take()
	f.worstWhole = max(f.worstWhole, whole)
	f.t.Logf("%s: the longest silence of each server %s; of all together %v", event, strings.Join(each, ", "), millis(whole))
}

func millis(d time.Duration) time.Duration { return d.Round(time.Millisecond) }

// all waits until each server has given IDs of tags again, a while from now.
func (f *fleet) all() {
	f.t.Helper()
	time.Sleep(figure(300*time.Millisecond, 2*time.Second))
	asked := time.Now()
	for _, p := range f.tags {
		until(f.t, 20*time.Second, "serving", func() error {
			if last := p.latest(); !last.After(asked) {
				return fmt.Errorf("no IDs for %v; first error: %v", time.Since(last), f.firstError())
			}
			return nil
		})
	}
}

// check compares every ID with every other one, once the clients are stopped.
func (f *fleet) check() {
	f.t.Helper()
	n, err := f.times.Count(), f.times.Check()
	for tag, seen := range f.ids {
		n += int64(seen.Count())
		if dup := seen.Check(); dup != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", tag, dup))
		}
	}
	if err != nil || n != f.count.Load() {
		f.t.Fatalf("%d IDs were compared, %d came in: %v", n, f.count.Load(), err)
	}
	f.t.Logf("%d IDs, no duplicate; %d failed calls (first: %v)", n, f.errors.Load(), f.firstError())
	f.t.Logf("the longest silence of one server %v, of all together %v", millis(f.worst), millis(f.worstWhole))
}
