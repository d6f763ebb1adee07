package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	sdk "github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/internal/testserver"
)

// connect returns a Go client of servers until t ends.
func connect(t testing.TB, url string, o *sdk.Options) *sdk.Client {
	t.Helper()
	c, err := sdk.New(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Close(ctx) // others may have taken IDs since
	})
	return c
}

// fixedServer returns a function that starts a server, with the same port and data each time.
func fixedServer(t testing.TB, args ...string) (start func() *server) {
	t.Helper()
	args = append([]string{leafBinary, "serve", "--listen", fmt.Sprintf("127.0.0.1:%d", freePort(t)), "--data", filepath.Join(t.TempDir(), "data")}, args...)
	return func() *server { return serveBy(t, args...) }
}

// A server is killed, is away for a while and comes back: not one call of a program fails.
func TestProgramsOutliveTheServer(t *testing.T) {
	t.Parallel()
	outage := figure(5*time.Second, 30*time.Second)
	step := figure(100_000, 1_000_000) // far more than the program takes meanwhile
	start := fixedServer(t)
	s := start()
	leafCommand(t, "tag", "create", "order", "--step", fmt.Sprint(step), "--server", s.url)
	ids := connect(t, s.url, nil)
	until(t, 30*time.Second, "an ID", func() error {
		_, err := ids.Next(t.Context(), "order")
		return err
	})
	l := startPaced(t, ids, "order")
	stats := func() (st struct{ Stock, Refills, Failures int64 }) {
		for _, tag := range ids.Stats() {
			st.Stock, st.Refills, st.Failures = tag.Stock, tag.Refills, tag.Failures
		}
		return st
	}
	until(t, 30*time.Second, "stocked", func() error {
		if n := stats().Stock; n < int64(step)*8/10 {
			return fmt.Errorf("%d IDs", n)
		}
		return nil
	})

	s.kill()
	before, away := stats(), time.Now()
	ranges, err := ids.Take(t.Context(), "order", nil, step/4) // to raise the demand
	if err != nil {
		t.Fatal(err)
	}
	l.add(ranges...)
	time.Sleep(time.Until(away.Add(outage)))
	during := stats()
	start()
	until(t, 30*time.Second, "filled up", func() error {
		if stats().Refills == during.Refills {
			return fmt.Errorf("%+v", stats())
		}
		return nil
	})
	l.await(t, l.count.Load()+1000)
	l.stop()
	l.check(t)
	if during.Failures == before.Failures || during.Refills != before.Refills {
		t.Errorf("%+v before and %+v during the outage: the server was there", before, during)
	}
	if l.errors.Load() != 0 {
		t.Errorf("%d calls failed, the first one: %v", l.errors.Load(), l.firstError())
	}
}

// startPaced takes about a thousand IDs a second in each way that a program has.
func startPaced(t testing.TB, ids *sdk.Client, tag string) *takes {
	l := new(takes)
	ctx := l.begin(t)
	for _, way := range ways(ids, tag, 10) {
		l.wg.Go(func() {
			for ctx.Err() == nil {
				if r, err := way(context.Background()); err != nil {
					l.fail(err)
				} else {
					l.add(r)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	return l
}

// A way takes a few IDs.
type way func(context.Context) (leaf.Range, error)

// ways returns the ways that a program has to take IDs of its stock; at once is for batches.
func ways(ids *sdk.Client, tag string, atOnce int) []way {
	g, cursor := ids.Tag(tag), ids.Cursor(tag, 0)
	one := func(id int64, err error) (leaf.Range, error) { return leaf.Range{Start: id, End: id + 1}, err }
	var rest []leaf.Range // of a batch in several ranges
	return []way{
		func(ctx context.Context) (leaf.Range, error) { return one(ids.Next(ctx, tag)) },
		func(ctx context.Context) (leaf.Range, error) { return one(g.Next(ctx)) },
		func(ctx context.Context) (leaf.Range, error) { return one(cursor.Next(ctx)) },
		func(ctx context.Context) (r leaf.Range, err error) {
			if len(rest) == 0 {
				rest, err = ids.Take(ctx, tag, rest, atOnce)
			}
			if err == nil {
				r, rest = rest[0], rest[1:]
			}
			return r, err
		},
	}
}

// A server behind a server behind a server: while the one in between is away, the last one
// serves from its stock, and each crash costs no more than the loss budget of who crashed.
func TestRelayTree(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	const budget = 100_000
	of := func(s *server) string { return "leaf://" + s.url[len("http://"):] }
	variable := fmt.Sprint("LEAF_SEGMENT_MAX_STOCK=", budget)
	data := filepath.Join(t.TempDir(), "data")
	central := serveWith(t, variable, "--data", data)
	address := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	middleData := filepath.Join(t.TempDir(), "data")
	startMiddle := func() *server {
		return serveBy(t, "env", variable, leafBinary, "serve", "--listen", address, "--data", middleData, "--store", of(central))
	}
	middle := startMiddle()
	edge := serveWith(t, variable, "--data", filepath.Join(t.TempDir(), "data"), "--store", of(middle))
	leafCommand(t, "tag", "create", "order", "--step", fmt.Sprint(budget), "--server", edge.url)
	edge.next("order")
	l := startLoad(t, 4, 1, "order", func(int) *server {
		time.Sleep(5 * time.Millisecond) // the stock has to last for a restart
		return edge
	})
	mine := l.seen.Shard()
	stocked := func() {
		t.Helper()
		until(t, time.Minute, "stocked", func() error {
			if n := edge.stock("order"); n < budget*8/10 {
				return fmt.Errorf("%d IDs", n)
			}
			return nil
		})
	}
	crashes := figure[int64](2, 20)
	for range crashes {
		stocked()
		middle.kill()
		for range 3 { // so that the edge asks for more
			ids, err := edge.ids("order", maxBatch)
			if err != nil {
				t.Fatal(err)
			}
			mine.Add(ids...)
			l.count.Add(maxBatch)
		}
		l.await(t, l.count.Load()+200)
		middle = startMiddle()
	}
	stocked()
	l.stop()
	l.check(t)
	if l.errors.Load() != 0 {
		t.Errorf("%d calls failed", l.errors.Load())
	}

	for _, s := range []*server{edge, middle, central} {
		s.kill()
	}
	lost := sqliteMaxID(t, filepath.Join(data, "leaf.db"), "order") - 1 - l.count.Load()
	t.Logf("%d IDs were lost by %d crashes of servers with a budget of %d each", lost, crashes+3, budget)
	if lost > (2*crashes+3)*budget { // the answer to the one behind it may be lost, too
		t.Errorf("%d IDs were lost", lost)
	}
}

// stock returns how many IDs of a tag the server holds.
func (s *server) stock(tag string) int64 {
	s.t.Helper()
	var peeked struct{ Stock int64 }
	out := leafCommand(s.t, "tag", "peek", tag, "-o", "json", "--server", s.url)
	if err := json.Unmarshal([]byte(out), &peeked); err != nil {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return peeked.Stock
}
