package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
)

// outlierAt is the time from which a request needs an explanation.
const outlierAt = 5 * time.Millisecond

// tails measures the slowest requests at half and at 80 % load while a server also refills, lists its
// tags, answers scrapes, reloads and extends its lease. It names what happened during each outlier.
func tails(ctx context.Context, l *lab) (report, error) {
	defer os.Setenv("GODEBUG", os.Getenv("GODEBUG"))
	os.Setenv("GODEBUG", "gctrace=1") // of the server
	run := &tailRun{began: time.Now(), target: routes}
	var t strings.Builder
	found := make(map[string]result)
	err := l.serveLeaf(ctx, func(s *bench.Leaf) error {
		run.server = s
		w := &wireServer{pid: s.PID(), target: run.target(s), clients: clients, pipeline: 1, ours: true}
		if _, err := w.measure(ctx, &w.full, load.Options{Duration: l.load}); err != nil {
			return err
		}
		if err := w.openLoop(ctx, &w.most, 1.1*w.full.rate.median(), l.load); err != nil {
			return err
		}
		t.WriteString("| load | requests a second | requests | p50, ms | p99, ms | p99.9, ms | p99.99, ms | most, ms | sent requests above 5 ms |\n|---|---|---|---|---|---|---|---|---|\n")
		for _, share := range []float64{0.5, 0.8} {
			if err := run.at(ctx, share*w.most.rate.median(), fmt.Sprintf("%.0f %%", 100*share), l.tail/2, &t); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return report{}, err
	}
	run.addCollections(run.server.Log())
	explained := run.explain(&t)
	found["tail-explained"] = result{figure: figure{explained}}
	return report{table: t.String(), found: found}, nil
}

// A tailRun has what happened at a server, and its slow requests.
type tailRun struct {
	began  time.Time // just before the server
	server *bench.Leaf
	target func(*bench.Leaf) load.Target

	mu   sync.Mutex
	slow []span
	seen []span
}

// A span is a time in which something happened.
type span struct {
	what     string
	from, to time.Time
}

func (r *tailRun) saw(what string, from, to time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, span{what, from, to})
}

// at puts load on the server for d.
func (r *tailRun) at(ctx context.Context, rate float64, name string, d time.Duration, t *strings.Builder) error {
	before := len(r.slow)
	watched, stop := context.WithCancel(ctx)
	var all errgroup.Group
	for _, watch := range []func(context.Context) error{r.watchCores, r.watchStore,
		every(10*time.Second, r.page("listing", "/db")), every(5*time.Second, r.page("scrape", "/metrics")), every(30*time.Second, r.reload)} {
		all.Go(func() error { return watch(watched) })
	}
	res, err := load.Run(ctx, load.Options{Target: slowTarget{r.target(r.server), r}, Keys: []load.Key{{Name: wireTag, Space: wireTag}}, Count: 1,
		Clients: clients, Pipeline: 1, Rate: rate, WarmUp: time.Second, Duration: d, Memory: 1 << 30})
	stop()
	if err = errors.Join(err, all.Wait()); err != nil {
		return err
	}
	if res.Failed > 0 || res.Check.Duplicates > 0 {
		return fmt.Errorf("%d requests failed, %d IDs came twice: %v", res.Failed, res.Check.Duplicates, res.Errors)
	}
	ms := func(d time.Duration) string { return short(d.Seconds() * 1000) }
	fmt.Fprintf(t, "| %s | %.0f | %d | %s | %s | %s | %s | %s | %d |\n", name, res.RequestRate, res.Succeeded, ms(res.Latency.P50), ms(res.Latency.P99),
		ms(res.Latency.P999), ms(res.Latency.P9999), ms(res.Latency.Max), len(r.slow)-before)
	return nil
}

// every calls do at once, and then in equal distances until ctx ends.
func every(d time.Duration, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ticks := time.NewTicker(d)
		defer ticks.Stop()
		for {
			if err := do(ctx); err != nil && ctx.Err() == nil {
				return err
			}
			select {
			case <-ticks.C:
			case <-ctx.Done():
				return nil
			}
		}
	}
}

func (r *tailRun) page(what, path string) func(context.Context) error {
	return func(ctx context.Context) error {
		from := time.Now()
		_, err := r.server.Get(ctx, path)
		r.saw(what, from, time.Now())
		return err
	}
}

// reload has the server read its files again. That takes it some milliseconds.
func (r *tailRun) reload(context.Context) error {
	from := time.Now()
	err := syscall.Kill(r.server.PID(), syscall.SIGHUP)
	r.saw("reload", from, from.Add(50*time.Millisecond))
	return err
}

// watchStore sees the writes of the embedded store: refills and extensions of the lease.
func (r *tailRun) watchStore(ctx context.Context) error {
	files, err := filepath.Glob(filepath.Join(r.server.Dir(), "*-wal"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no log of the embedded store in %s: %w", r.server.Dir(), err)
	}
	last := make(map[string]time.Time)
	return every(time.Millisecond, func(context.Context) error {
		for _, file := range files {
			if info, err := os.Stat(file); err == nil && !info.ModTime().Equal(last[file]) {
				last[file] = info.ModTime()
				r.saw("write of the store", info.ModTime().Add(-5*time.Millisecond), info.ModTime().Add(5*time.Millisecond))
			}
		}
		return nil
	})(ctx)
}

// watchCores sees when the generator or a thread of the server waited for a core, and when the host
// of this virtual machine gave a core to others.
func (r *tailRun) watchCores(ctx context.Context) error {
	const pause, least = 10 * time.Millisecond, 2 * time.Millisecond
	waited := make(map[string]time.Duration)
	stolen := stolenTicks()
	for from := time.Now(); ctx.Err() == nil; {
		time.Sleep(pause)
		now := time.Now()
		if n := stolenTicks(); n > stolen {
			r.saw("the host gave a core to others", from, now)
			stolen = n
		}
		if now.Sub(from) > pause+least {
			r.saw("the generator waited for a core", from, now)
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", r.server.PID()))
		if err != nil {
			return err
		}
		for _, thread := range threads {
			total := runDelay(thread)
			if before, ok := waited[thread]; ok && total-before > least {
				r.saw("the server waited for a core", from, now)
			}
			waited[thread] = total
		}
		from = now
	}
	return nil
}

// stolenTicks is the time, in hundredths of a second, in which a core was ready and the host ran something
// else; see proc_stat(5).
func stolenTicks() int64 {
	text, _ := os.ReadFile("/proc/stat")
	fields := strings.Fields(string(text))
	if len(fields) < 9 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[8], 10, 64)
	return n
}

// runDelay is how long a thread has been ready without running; 0 once it has ended.
func runDelay(file string) time.Duration {
	text, _ := os.ReadFile(file)
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseInt(fields[1], 10, 64)
	return time.Duration(n)
}

var collection = regexp.MustCompile(`(?m)^gc \d+ @([\d.]+)s \d+%: ([\d.]+)\+([\d.]+)\+([\d.]+) ms clock`)

// addCollections adds the collections of garbage that the server's log has.
func (r *tailRun) addCollections(log string) {
	for _, m := range collection.FindAllStringSubmatch(log, -1) {
		var n [4]float64
		for i := range n {
			n[i], _ = strconv.ParseFloat(m[i+1], 64)
		}
		from := r.began.Add(time.Duration(n[0] * float64(time.Second)))
		took := time.Duration((n[1] + n[2] + n[3]) * float64(time.Millisecond))
		r.saw("collection of garbage", from.Add(-5*time.Millisecond), from.Add(took+10*time.Millisecond))
	}
}

// explain writes what happened during the outliers, and returns the share with an explanation, in
// percent. What delays one request leaves a queue, which delays the next ones: an outlier that
// began during an explained one is explained, too.
func (r *tailRun) explain(t *strings.Builder) float64 {
	const none, queued = "nothing of this", "no more, but a queue that it left"
	counts, worst := make(map[string]int), make(map[string]time.Duration)
	slices.SortFunc(r.seen, func(a, b span) int { return a.from.Compare(b.from) })
	longest := time.Duration(0)
	for _, e := range r.seen {
		longest = max(longest, e.to.Sub(e.from))
	}
	slices.SortFunc(r.slow, func(a, b span) int { return a.from.Compare(b.from) })
	var queue time.Time // the end of the latest explained outlier
	for _, s := range r.slow {
		during := make(map[string]bool)
		first, _ := slices.BinarySearchFunc(r.seen, s.from.Add(-longest), func(e span, at time.Time) int { return e.from.Compare(at) })
		for _, e := range r.seen[first:] {
			if !e.from.Before(s.to) {
				break
			}
			if s.from.Before(e.to) {
				during[e.what] = true
			}
		}
		causes := slices.Sorted(maps.Keys(during))
		if len(causes) == 0 && s.from.Before(queue) {
			causes = []string{queued}
		}
		if len(causes) == 0 {
			causes = []string{none}
		} else if s.to.After(queue) {
			queue = s.to
		}
		for _, c := range causes {
			counts[c]++
			worst[c] = max(worst[c], s.to.Sub(s.from))
		}
	}
	t.WriteString("\n| during requests above 5 ms | requests | the slowest, ms | share of the time |\n|---|---|---|---|\n")
	causes := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(causes, func(a, b string) int { return counts[b] - counts[a] })
	for _, c := range causes {
		fmt.Fprintf(t, "| %s | %d | %s | %s |\n", c, counts[c], short(worst[c].Seconds()*1000), r.shareOf(c))
	}
	return 100 * (1 - float64(counts[none])/float64(max(1, len(r.slow))))
}

// shareOf returns the share of the run in which something happened, with or without a slow request:
// a permanent state explains nothing.
func (r *tailRun) shareOf(what string) string {
	total := r.timeOf(what)
	if total == 0 {
		return "–"
	}
	return short(100*total.Seconds()/time.Since(r.began).Seconds()) + " %"
}

// timeOf returns for how long something happened. seen is in order.
func (r *tailRun) timeOf(what string) (total time.Duration) {
	var end time.Time
	for _, e := range r.seen {
		if e.what != what || !e.to.After(end) {
			continue
		}
		if e.from.Before(end) {
			e.from = end
		}
		total, end = total+e.to.Sub(e.from), e.to
	}
	return total
}

// A slowTarget notes slow requests.
type slowTarget struct {
	load.Target
	run *tailRun
}

// Open returns a connection that does so.
func (t slowTarget) Open() load.Conn { return slowConn{t.Target.Open(), t.run} }

type slowConn struct {
	load.Conn
	run *tailRun
}

// Do notes a request that takes long.
func (c slowConn) Do(ctx context.Context, calls []*load.Call) {
	from := time.Now()
	c.Conn.Do(ctx, calls)
	if to := time.Now(); to.Sub(from) > outlierAt {
		c.run.mu.Lock()
		defer c.run.mu.Unlock()
		c.run.slow = append(c.run.slow, span{"", from, to})
	}
}
