package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/segment"
)

// A footing is what the whole program needs with so many tags.
type footing struct {
	tags   int
	rounds int

	first, idle, own, used, then, heap, share, most figure // ms, MB, MB, s, MB, bytes a tag, %, MB
}

const (
	callers = 64

	// A server compares its tags with the store every 30 s, which is what it does when idle.
	checkEvery = 30 * time.Second
)

// settle is how long a server has before it is idle, and watch how long it is then looked at.
// With few tags there is nothing to compare.
func (f *footing) settle() (settle, watch time.Duration) {
	if f.tags < 100_000 {
		return 2 * time.Second, 3 * time.Second
	}
	return checkEvery / 2, checkEvery
}

// footprint measures the whole program with 1, 1,000 and 100,000 tags: its start, its memory,
// the first use of every tag, and what it does when nothing is asked of it.
func footprint(ctx context.Context, l *lab) (report, error) {
	few, some, many := &footing{tags: 1, rounds: l.rounds}, &footing{tags: 1000, rounds: 1}, &footing{tags: 100_000, rounds: 3}
	var t strings.Builder
	t.WriteString("| tags | first ID after, ms | resident, idle, MB | of it not of files | each tag used once, s | resident then, MB | heap of a tag, bytes |" +
		" CPU idle, % of a core | most resident under load, MB |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range []*footing{few, some, many} {
		dir, err := os.MkdirTemp(l.dir, "footprint")
		if err == nil {
			err = createTags(ctx, dir, f.tags)
		}
		for range f.rounds {
			if err == nil {
				err = f.measure(ctx, l, dir)
			}
		}
		if err != nil {
			return report{}, fmt.Errorf("%d tags: %w", f.tags, err)
		}
		heap := short(f.heap.median())
		if f.tags == 1 {
			heap = "–"
		}
		fmt.Fprintf(&t, "| %d | %s | %s | %s | %s | %s | %s | %s | %s |\n", f.tags, f.first.spread(), short(f.idle.median()), short(f.own.median()),
			short(f.used.median()), short(f.then.median()), heap, f.share.spread(), short(f.most.median()))
	}
	return report{table: t.String(), found: map[string]result{
		"start": {figure: few.first}, "idle-memory": {figure: few.idle}, "load-memory": {figure: few.most},
		"tag-memory": {figure: many.heap}, "tags-use": {figure: many.used}, "tags-cpu": {figure: many.share},
	}}, nil
}

// measure starts a server on an existing store and measures it once.
func (f *footing) measure(ctx context.Context, l *lab, dir string) error {
	binary, err := l.leaf(ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	s, err := bench.Start(binary, "--listen", "127.0.0.1:0", "--resp", "off", "--data", dir, "--store", "sqlite:"+filepath.Join(dir, "ids.db"))
	if err != nil {
		return err
	}
	defer s.Stop()
	if err := use(s.URL, tagName(0)); err != nil {
		return err
	}
	f.first = append(f.first, time.Since(began).Seconds()*1000)
	if err := f.memory(ctx, s); err != nil {
		return fmt.Errorf("%w\n%s", err, s.Log())
	}
	return f.load(ctx, s)
}

// memory measures what the server keeps, and what it does when idle.
func (f *footing) memory(ctx context.Context, s *bench.Leaf) error {
	time.Sleep(2 * time.Second) // until it rests
	idle, err := bench.MemoryOf(s.PID())
	if err != nil {
		return err
	}
	heap, err := f.heapOf(ctx, s)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := useAll(s.URL, f.tags); err != nil {
		return err
	}
	used := time.Since(began)
	settle, watch := f.settle()
	time.Sleep(settle)
	share, err := busy(s.PID(), watch)
	if err != nil {
		return err
	}
	then, err := bench.MemoryOf(s.PID())
	if err != nil {
		return err
	}
	held, err := f.heapOf(ctx, s)
	f.idle, f.own = append(f.idle, idle.Resident/1e6), append(f.own, idle.Own/1e6)
	f.used, f.then = append(f.used, used.Seconds()), append(f.then, then.Resident/1e6)
	f.heap, f.share = append(f.heap, max(0, held-heap)/float64(f.tags)), append(f.share, share)
	return err
}

// heapOf looks at the heap where there are enough tags to tell from what else is in it: the
// look costs memory itself.
func (f *footing) heapOf(ctx context.Context, s *bench.Leaf) (float64, error) {
	if f.tags == 1 {
		return 0, nil
	}
	return s.Heap(ctx)
}

// busy is how much of a core a process uses, in percent.
func busy(pid int, d time.Duration) (float64, error) {
	before, err := bench.CPUSeconds(pid)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	time.Sleep(d)
	after, err := bench.CPUSeconds(pid)
	return 100 * (after - before) / time.Since(began).Seconds(), err
}

// load puts 5,000 requests a second on the server.
func (f *footing) load(ctx context.Context, s *bench.Leaf) error {
	server := load.Server{Addr: strings.TrimPrefix(s.URL, "http://"), Timeout: 10 * time.Second}
	res, err := load.Run(ctx, load.Options{Target: load.Routes(server, "segment"), Keys: []load.Key{{Name: tagName(0), Space: tagName(0)}},
		Count: 1, Clients: clients, Pipeline: 1, Rate: 5000, Duration: 3 * time.Second, Memory: 1 << 30})
	if err != nil {
		return err
	}
	if res.Failed > 0 || res.Check.Duplicates > 0 {
		return fmt.Errorf("under load %d requests failed, %d IDs came twice: %v", res.Failed, res.Check.Duplicates, res.Errors)
	}
	m, err := bench.MemoryOf(s.PID())
	f.most = append(f.most, m.Most/1e6)
	return err
}

func tagName(i int) string { return fmt.Sprintf("tag-%06d", i) }

func createTags(ctx context.Context, dir string, n int) error {
	file, err := sql.Open("sqlite", filepath.Join(dir, "ids.db"))
	if err != nil {
		return err
	}
	defer file.Close()
	db, err := sqlite.New(file, nil)
	if err != nil {
		return err
	}
	tags := make([]segment.Tag, n)
	for i := range tags {
		tags[i] = segment.Tag{Name: tagName(i), MaxID: 1, Step: 1000}
	}
	return errors.Join(db.Init(ctx, tags), db.Close())
}

var client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}}

// use takes an ID of tag.
func use(url, tag string) error {
	resp, err := client.Get(url + "/api/segment/get/" + tag)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	if _, bad := strconv.ParseInt(string(body), 10, 64); err == nil {
		err = bad
	}
	return err
}

// useAll takes an ID of each tag, by many callers.
func useAll(url string, tags int) error {
	var next atomic.Int64
	var wg sync.WaitGroup
	errs := make(chan error, callers)
	for range callers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(tags); i = next.Add(1) - 1 {
				if err := use(url, tagName(int(i))); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	return <-errs
}
