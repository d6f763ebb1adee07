package nats_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/kvtest"
	"github.com/leaf-id/leaf/driver/kv"
	leafnats "github.com/leaf-id/leaf/driver/nats"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// shared is a server for tests that do not end it. Each test has a stream of its own.
var shared *testserver.NATSServer

func TestMain(m *testing.M) { os.Exit(testserver.Main(m, &shared, testserver.StartNATS)) }

var streams atomic.Int64

// newOptions names a stream that no other test uses.
func newOptions() *leafnats.Options {
	return &leafnats.Options{Stream: fmt.Sprintf("LEAF_%d", streams.Add(1))}
}

func open(t testing.TB, url string, o *leafnats.Options) *kv.DB {
	t.Helper()
	db, err := leafnats.Open(url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// create makes a store and a registry.
func create(t testing.TB, url string, o *leafnats.Options, tags ...segment.Tag) *kv.DB {
	t.Helper()
	db := open(t, url, o)
	if err := errors.Join(db.Init(t.Context(), tags), db.InitRegistry(t.Context())); err != nil {
		t.Fatal(err)
	}
	return db
}

func TestStore(t *testing.T) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		o := newOptions()
		create(t, shared.URL(), o)
		return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return kvtest.Store(open(t, shared.URL(), o)) }}
	})
}

func TestRegistry(t *testing.T) {
	drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
		o := newOptions()
		create(t, shared.URL(), o)
		return drivertest.RegistryBackend{Open: func(t testing.TB) worker.Registry { return kvtest.Registry(open(t, shared.URL(), o)) }}
	})
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 1000}

// many is how many cells are listed: all that there can be in the lab, else some.
var many = map[bool]int{true: 524_288, false: 1024}[os.Getenv("LEAF_LAB") != ""]

func TestMany(t *testing.T) {
	db := create(t, shared.URL(), newOptions())
	drivertest.TestMany(t, db.Store(), db.Registry(), many)
}

// Claims must wait: a client cannot see whether the servers sync before they acknowledge.
func TestServerEpoch(t *testing.T) {
	var r worker.Registry = create(t, shared.URL(), newOptions()).Registry()
	lossy, ok := r.(worker.LossyRegistry)
	if !ok {
		t.Fatal("the registry does not say whether it may lose writes")
	}
	if epoch, err := lossy.ServerEpoch(t.Context()); !epoch.Lossy || epoch.Incarnation != "" || err != nil {
		t.Errorf("epoch: %+v, %v", epoch, err)
	}
}

// jetStream returns a connection that outlives starts of the server.
func jetStream(t *testing.T, server *testserver.NATSServer) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect(server.URL(), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// A stream that could lose a cell, or answer with an old one, is refused.
func TestUnfitStream(t *testing.T) {
	js := jetStream(t, shared)
	for want, change := range map[string]func(*jetstream.StreamConfig){
		"in memory":    func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage },
		"expire":       func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour },
		"discard new":  func(c *jetstream.StreamConfig) { c.MaxMsgs, c.Discard = 100, jetstream.DiscardOld },
		"retention":    func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy },
		"allow direct": func(c *jetstream.StreamConfig) { c.AllowDirect = true },
	} {
		o := newOptions()
		config := jetstream.StreamConfig{Name: o.Stream, Subjects: []string{o.Stream + ".>"}}
		change(&config)
		if _, err := js.CreateStream(t.Context(), config); err != nil {
			t.Fatal(err)
		}
		db := open(t, shared.URL(), o)
		for what, err := range map[string]error{
			"init": db.Init(t.Context(), nil), "init registry": db.InitRegistry(t.Context()),
		} {
			if !errors.Is(err, leaf.ErrUnsupported) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of a stream that %s: %v", what, want, err)
			}
		}
	}
}

func TestCreatedOnce(t *testing.T) {
	o := newOptions()
	db := open(t, shared.URL(), o)
	if _, err := db.Store().Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("without a stream: %v", err)
	}
	create(t, shared.URL(), o, order)
	if _, err := db.Store().Advance(t.Context(), "order", 1); err != nil {
		t.Errorf("a stream that came later: %v", err)
	}
	if err := db.Init(t.Context(), nil); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second init: %v", err)
	}
}

// The server is killed and frozen under load: no ID is handed out twice, and the load goes on.
func TestServerKilled(t *testing.T) {
	testserver.Long(t)
	server := testserver.NATS(t)
	o := newOptions()
	create(t, server.URL(), o, order)
	var dealt drivertest.Ranges
	var failed atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		s := open(t, server.URL(), o).Store()
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if got, err := s.Advance(t.Context(), "order", 10); err == nil {
					dealt.Add(got.Range)
				} else {
					failed.Add(1)
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	more := func() {
		t.Helper()
		deadline := time.Now().Add(30 * time.Second)
		for want := dealt.Count() + 2000; dealt.Count() < want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no allocations any more")
			}
		}
	}
	more()
	for range 2 {
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
		more()
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	more()
	close(stop)
	wg.Wait()
	t.Logf("%d IDs, %d failed calls", dealt.Count(), failed.Load())
	if err := dealt.Check(); err != nil {
		t.Error(err)
	}
}

// A stream keeps its name for grants over restarts and changes of its configuration: otherwise
// servers would suspect lost writes. A new stream has another name.
func TestServer(t *testing.T) {
	server := testserver.NATS(t)
	o := newOptions()
	create(t, server.URL(), o, order)
	granted := func() string {
		t.Helper()
		grant, err := open(t, server.URL(), o).Store().Advance(t.Context(), order.Name, 1)
		if err != nil || grant.Server == "" {
			t.Fatalf("%+v, %v", grant, err)
		}
		return grant.Server
	}
	js := jetStream(t, server)
	first, running := granted(), open(t, server.URL(), o).Store()
	if grant, err := running.Advance(t.Context(), order.Name, 1); err != nil || grant.Server != first {
		t.Fatalf("%+v, %v, want server %s", grant, err, first)
	}
	for _, bytes := range []int32{1 << 20, 1 << 21} {
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
		if got := granted(); got != first {
			t.Errorf("started again: %s, and was %s", got, first)
		}
		reconnected(t, func() error {
			s, err := js.Stream(t.Context(), o.Stream)
			if err != nil {
				return err
			}
			config := s.CachedInfo().Config
			config.MaxMsgSize = bytes
			_, err = js.UpdateStream(t.Context(), config)
			return err
		})
	}
	if err := js.DeleteStream(t.Context(), o.Stream); err != nil {
		t.Fatal(err)
	}
	create(t, server.URL(), o, order)
	if granted() == first {
		t.Errorf("a stream that was made anew is still %s", first)
	}
	reconnected(t, func() error {
		grant, err := running.Advance(t.Context(), order.Name, 1)
		if err == nil && grant.Server == first {
			t.Errorf("%+v to a client that is in use: the stream was made anew", grant)
		}
		return err
	})
}

// reconnected repeats a call until its client has reconnected to a restarted server.
func reconnected(t *testing.T, call func() error) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := call()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// The error names one of several foreign subjects, on one line.
func TestForeignSubjects(t *testing.T) {
	o := newOptions()
	r := create(t, shared.URL(), o).Registry()
	conn, err := nats.Connect(shared.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, name := range []string{"0.+", "1.-!", "0.MQ", "1.MQ"} { // one of the last two is in the shard of another name
		if _, err := conn.Request(o.Stream+".workers."+name, []byte("x"), 5*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.List(t.Context()); err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "purge it") {
		t.Errorf("list: %v", err)
	}
}
