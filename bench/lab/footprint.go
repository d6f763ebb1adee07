package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/segment"
)

// A footing is the footprint of the whole program with a number of tags.
type footing struct {
	tags   int
	rounds int
	visit  func(*bench.Leaf) error // once every tag was used; nil: nothing

	first, idle, own, used, then, heap, share, most figure      // ms, MB, MB, s, MB, bytes a tag, %, MB
	served, asked                                   figure      // processor time of the server and of its callers in used, s
	parts                                           bench.Parts // of idle, in the last round
}

const (
	callers = 64

	// A server gives the memory of its start back after 5 s, and has done all that an idle one does after
	// 10 more.
	rest = 17 * time.Second

	// An idle server compares its tags with the store every 30 s. The second time after its start it
	// lists them.
	checkEvery = 30 * time.Second
)

// settle is the time until a server is idle, and watch the time of observation after it. With few
// tags a server compares nothing.
func (f *footing) settle() (settle, watch time.Duration) {
	if f.tags < 100_000 {
		return 2 * time.Second, 3 * time.Second
	}
	if f.tags < 1_000_000 {
		return checkEvery, checkEvery
	}
	return checkEvery, 4 * checkEvery // it compares less often
}

// footprint measures the whole program with 1, 1,000 and 100,000 tags: its start, its memory, the
// first use of every tag, and its work when idle.
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
	fmt.Fprintf(&t, "\nThe first use of %d tags took %s s of the server's processor time\nand %s s of its callers'.\n", many.tags,
		many.served.spread(), many.asked.spread())
	t.WriteString("\n| resident, idle, with one tag | MB |\n|---|---|\n")
	for i, name := range bench.PartNames {
		fmt.Fprintf(&t, "| %s | %s |\n", name, short(few.parts[i]/1e6))
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
	server := routes(s)
	conn := server.Open()
	defer conn.Close()
	if err := use(ctx, conn, tagName(0)); err != nil {
		return err
	}
	f.first = append(f.first, time.Since(began).Seconds()*1000)
	if err := f.memory(ctx, s, server); err != nil {
		return fmt.Errorf("%w\n%s", err, s.Log())
	}
	return f.load(ctx, s, server)
}

// routes is a server as its HTTP routes reach it.
func routes(s *bench.Leaf) load.Target {
	return load.Routes(load.Server{Addr: strings.TrimPrefix(s.URL, "http://"), Timeout: 10 * time.Second}, "segment")
}

// memory measures the server's memory, and its work when idle.
func (f *footing) memory(ctx context.Context, s *bench.Leaf, server load.Target) error {
	time.Sleep(rest)
	idle, err := bench.MemoryOf(s.PID())
	if err != nil {
		return err
	}
	if f.parts, err = bench.PartsOf(s.PID()); err != nil {
		return err
	}
	heap, err := f.heapOf(ctx, s)
	if err != nil {
		return err
	}
	if err := f.use(ctx, s, server); err != nil {
		return err
	}
	if f.visit != nil {
		if err := f.visit(s); err != nil {
			return err
		}
	}
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
	f.then = append(f.then, then.Resident/1e6)
	f.heap, f.share = append(f.heap, max(0, held-heap)/float64(f.tags)), append(f.share, share)
	return err
}

// use measures the first use of every tag, and whose processor time it takes.
func (f *footing) use(ctx context.Context, s *bench.Leaf, server load.Target) error {
	before, err := bench.CPUSeconds(s.PID())
	if err != nil {
		return err
	}
	own, began := processTime(), time.Now()
	if err := useAll(ctx, server, f.tags); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := bench.CPUSeconds(s.PID())
	f.used, f.served = append(f.used, took.Seconds()), append(f.served, after-before)
	f.asked = append(f.asked, (processTime() - own).Seconds())
	return err
}

// heapOf reads the heap if tags dominate it; reading costs memory itself.
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
func (f *footing) load(ctx context.Context, s *bench.Leaf, server load.Target) error {
	res, err := load.Run(ctx, load.Options{Target: server, Keys: []load.Key{{Name: tagName(0), Space: tagName(0)}},
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

// use takes an ID of a tag.
func use(ctx context.Context, conn load.Conn, tag string) error {
	call := load.Call{Key: tag, Count: 1}
	conn.Do(ctx, []*load.Call{&call})
	return call.Err
}

// useAll takes an ID of each tag, by many callers.
func useAll(ctx context.Context, server load.Target, tags int) error {
	var next atomic.Int64
	var all errgroup.Group
	for range callers {
		all.Go(func() error {
			conn := server.Open()
			defer conn.Close()
			for i := next.Add(1) - 1; i < int64(tags); i = next.Add(1) - 1 {
				if err := use(ctx, conn, tagName(int(i))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return all.Wait()
}
