package zookeeper_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/zookeeper"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// behind has the tree's registries go through a proxy.
func behind(t testing.TB, tr *tree) *proxy {
	p := newProxy(t, tr.addr)
	tr.addr = p.addr
	return p
}

func TestSentOnce(t *testing.T) {
	tr := newTree(t)
	direct := tr.store(t, order)
	tr.pool(t)
	p := behind(t, tr)
	s, r := tr.store(t), tr.pool(t)
	fillNodes(t, r)
	drivertest.TestSentOnce(t, drivertest.Lossy{Store: s, Registry: r, Direct: direct, Tag: order,
		Lose: func() { p.loseNext.Store(true) }, Writes: p.writes.Load})
}

// fillNodes makes the nodes above those of the records.
func fillNodes(t *testing.T, r worker.Registry) {
	t.Helper()
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 4}, worker.Record{Worker: 4, Term: 1}); err != nil {
		t.Fatal(err)
	}
}

// TestReadsAreSynced: a read makes a follower, if any, catch up first.
func TestReadsAreSynced(t *testing.T) {
	tr := newTree(t)
	tr.store(t, order)
	p := behind(t, tr)
	s, r := tr.store(t), tr.pool(t)
	drivertest.TestReads(t, s, r, order.Name, func() { p.synced.Store(false) })
	if n := p.unsynced.Load(); n != 0 || !p.synced.Load() {
		t.Errorf("%d reads came before a sync", n)
	}
}

func TestLostAnswerOfAnUpload(t *testing.T) {
	tr := newTree(t)
	p := behind(t, tr)
	l := tr.leaf(t, nil)
	id := assign(t, l)
	hold(t, l, id)
	node := tr.path("forever", child("192.0.2.2:8080", int(id)))
	for range 3 {
		p.loseNext.Store(true)
		eventually(t, "an answer is lost", func() bool { return !p.loseNext.Load() })
		_, before := tr.get(node)
		eventually(t, "uploads go on", func() bool {
			_, now := tr.get(node)
			return now.Version > before.Version+2
		})
	}
	if _, err := l.Load(t.Context(), id); err != nil {
		t.Errorf("load: %v", err)
	}
}

func TestLostAnswerOfTheFirstNode(t *testing.T) {
	tr := newTree(t)
	tr.parents(tr.path("forever"))
	startJava(t, tr, "192.0.2.3", "8080").stop()
	p := behind(t, tr)
	p.loseNext.Store(true)
	l := tr.leaf(t, nil)
	if id, err := l.Assign(t.Context(), 1023); err == nil {
		t.Errorf("assigned %d although the answer was lost", id)
	}
	if id := assign(t, l); id != 1 {
		t.Errorf("worker ID %d, want 1", id)
	}
	if names := tr.forever(); len(names) != 2 {
		t.Errorf("children %q, want 2: no number is wasted", names)
	}
}

// calls are one of each that reaches the server.
func calls(ctx context.Context, l *zookeeper.Leaf) map[string]error {
	_, load := l.Load(ctx, 1)
	_, list := l.List(ctx)
	_, clock := l.Clock(ctx)
	_, assign := l.Assign(ctx, 1023)
	_, watch := l.Watch(ctx, 1) // the assigned worker ID
	_, swap := l.Swap(ctx, worker.Record{Worker: 2}, worker.Record{Worker: 2, Term: 1})
	return map[string]error{"load": load, "list": list, "clock": clock, "assign": assign, "watch": watch, "swap": swap}
}

func TestServerThatIsDown(t *testing.T) {
	server := testserver.ZooKeeper(t)
	tr := newTreeOn(t, server)
	l := tr.leaf(t, nil)
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	for what, err := range calls(t.Context(), l) {
		if err == nil || !strings.Contains(err.Error(), tr.addr) {
			t.Errorf("%s: %v, want an error that names %s", what, err, tr.addr)
		}
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	for what, err := range calls(t.Context(), l) {
		if err != nil {
			t.Errorf("%s, with the server up: %v", what, err)
		}
	}
}

func TestServerThatDoesNotAnswer(t *testing.T) {
	server := testserver.ZooKeeper(t)
	tr := newTreeOn(t, server)
	for _, connected := range []bool{false, true} {
		l := tr.leaf(t, nil)
		if connected {
			if _, err := l.Load(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for what, call := range map[string]func(context.Context) error{
			"load":   func(ctx context.Context) error { _, err := l.Load(ctx, 1); return err },
			"assign": func(ctx context.Context) error { _, err := l.Assign(ctx, 1023); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			err := call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), tr.addr) {
				t.Errorf("%s: %v, want the deadline and %s", what, err, tr.addr)
			}
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("two calls of 100 ms took %v", took)
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestServerKilledOrFrozenMeanwhile(t *testing.T) {
	server := testserver.ZooKeeper(t)
	tr := newTreeOn(t, server)
	l := tr.leaf(t, func(o *zookeeper.Options) { o.SessionTimeout = time.Second })
	id := assign(t, l)
	held := hold(t, l, id)
	node := tr.path("forever", child("192.0.2.2:8080", int(id)))
	for what, trouble := range map[string]func() error{
		"kill": func() error { return errors.Join(server.Kill(), server.Start()) },
		"freeze beyond the session": func() error {
			if err := server.Pause(); err != nil {
				return err
			}
			time.Sleep(2 * time.Second) // what passes here is the server's time
			return server.Resume()
		},
	} {
		if err := trouble(); err != nil {
			t.Fatal(err)
		}
		var version int32
		eventually(t, "the server answers after "+what, func() bool {
			_, stat, err := tr.conn.Get(node)
			if err == nil {
				version = stat.Version
			}
			return err == nil
		})
		eventually(t, "uploads go on after "+what, func() bool {
			_, stat, err := tr.conn.Get(node)
			return err == nil && stat.Version > version+2
		})
		next := held
		next.Horizon = next.Horizon.Add(time.Millisecond)
		if _, err := l.Swap(t.Context(), held, next); err != nil {
			t.Errorf("after %s: %v", what, err)
		}
		held = next
	}
}

func TestForeignWriteWhileCutOff(t *testing.T) {
	tr := newTree(t)
	other := tr.leaf(t, port(8081)).Records()
	p := behind(t, tr)
	l := tr.leaf(t, nil)
	id := assign(t, l)
	held := hold(t, l, id)
	ownCell, err := l.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	thirdCell, err := tr.leaf(t, nil).Records().(worker.Watcher).Watch(t.Context(), 700)
	if err != nil {
		t.Fatal(err)
	}
	p.refuse.Store(true)
	p.cut()
	dials := p.dials.Load()
	eventually(t, "all have tried to connect again", func() bool { return p.dials.Load() > dials+4 })
	next := held
	next.Horizon = next.Horizon.Add(time.Millisecond)
	if _, err := other.Swap(t.Context(), held, next); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Swap(t.Context(), worker.Record{Worker: 700}, worker.Record{Worker: 700, Term: 1}); err != nil {
		t.Fatal(err)
	}
	p.refuse.Store(false)
	<-ownCell
	<-thirdCell
	if ownCell, err = l.Watch(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	p.refuse.Store(true)
	p.cut()
	startJava(t, &tree{t: t, addr: shared.Addr(), chroot: tr.chroot, conn: tr.conn}, "192.0.2.2", "8080")
	p.refuse.Store(false)
	<-ownCell
	eventually(t, "the load says that the worker ID was taken", func() bool {
		_, err := l.Load(t.Context(), id)
		return errors.Is(err, worker.ErrTaken)
	})
}

// Whether a look or an upload finds out that another server wrote to the child meanwhile:
// the assignment ends once.
func TestTakenWhileCutOff(t *testing.T) {
	for range 3 { // which of the two is first depends on the connection
		tr := newTree(t)
		p := behind(t, tr)
		l := tr.leaf(t, nil)
		id := assign(t, l)
		hold(t, l, id)
		p.refuse.Store(true)
		p.cut()
		dials := p.dials.Load()
		eventually(t, "it has tried to connect again", func() bool { return p.dials.Load() > dials })
		tr.set(tr.path("forever", tr.forever()[0]), string(javaText("192.0.2.2", "8080")))
		p.refuse.Store(false)
		eventually(t, "the load says that the worker ID was taken", func() bool {
			_, err := l.Load(t.Context(), id)
			return errors.Is(err, worker.ErrTaken)
		})
		l.Close() // it waits for the guard
	}
}

func TestReconnectsAreNoStorm(t *testing.T) {
	p := newProxy(t, shared.Addr())
	p.refuse.Store(true)
	db, err := zookeeper.Open([]string{p.addr}, &zookeeper.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, _ = db.Registry().Load(ctx, 1) // it fails
			}
		})
	}
	callers.Wait()
	if n := p.dials.Load(); n < 2 || n > 6 {
		t.Errorf("%d connections in three seconds, want 2 to 6", n)
	}
}

func TestSecondServerOfTheList(t *testing.T) {
	tr := newTree(t)
	dead := newProxy(t, shared.Addr())
	dead.refuse.Store(true)
	for range 4 { // the first one to be tried is chosen at random
		l, err := zookeeper.OpenLeaf([]string{dead.addr, tr.addr}, tr.options())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.Load(t.Context(), 1); err != nil {
			t.Error(err)
		}
		l.Close()
	}
}

func TestWhatIsNoZooKeeper(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") // and waits
		}
	}()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	db, err := zookeeper.Open([]string{listener.Addr().String()}, &zookeeper.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	began := time.Now()
	if _, err := db.Registry().Load(t.Context(), 1); err == nil || !strings.Contains(err.Error(), listener.Addr().String()) {
		t.Errorf("%v, want an error that names the server", err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("it took %v to notice", took)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d MiB were allocated for its answer", used>>20)
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	server := testserver.ZooKeeper(t)
	tr := newTreeOn(t, server)
	open := func(port int) *zookeeper.Leaf {
		opts := tr.options()
		opts.Port = port
		l, err := zookeeper.OpenLeaf([]string{tr.addr}, opts)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	before := runtime.NumGoroutine()
	idle, busy, unconnected := open(8081), open(8082), open(8083)
	hold(t, idle, assign(t, idle))
	id := assign(t, busy)
	hold(t, busy, id)
	signals, err := busy.Watch(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := idle.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("closing an idle one took %v", took)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for _, l := range []*zookeeper.Leaf{busy, unconnected} {
		callers.Go(func() {
			if _, err := l.Load(context.Background(), id); err == nil {
				t.Error("a paused server answered")
			}
		})
	}
	began = time.Now()
	for _, l := range []*zookeeper.Leaf{busy, unconnected, busy} {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	callers.Wait()
	if took := time.Since(began); took > 4*time.Second {
		t.Errorf("closing took %v", took)
	}
	for range signals { // until it is closed
	}
	for what, err := range calls(t.Context(), unconnected) {
		if !errors.Is(err, leaf.ErrClosed) {
			t.Errorf("%s after close: %v, want one that wraps leaf.ErrClosed", what, err)
		}
	}
	eventually(t, "all goroutines have ended", func() bool { return runtime.NumGoroutine() <= before })
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
}

func TestLibraryLogsToTheLogger(t *testing.T) {
	tr := newTree(t)
	var log testserver.Output
	handler := slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})
	l := tr.leaf(t, func(o *zookeeper.Options) { o.Logger = slog.New(handler) })
	assign(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"connected to zookeeper", "zookeeper client", "worker ID assigned"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log:\n%s", want, &log)
		}
	}
}
