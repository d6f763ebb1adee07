package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newStore(t testing.TB) *kv.Store {
	t.Helper()
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 1000}); err != nil {
		t.Fatal(err)
	}
	return store
}

// connect returns a client of servers until t ends.
func connect(t testing.TB, o *client.Options, servers ...*testleaf.Server) *client.Client {
	t.Helper()
	var hosts []string
	for _, s := range servers {
		hosts = append(hosts, s.Host())
	}
	c, err := client.New("http://"+strings.Join(hosts, ","), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = c.Close(ctx) // others may have taken IDs since
	})
	return c
}

func wantNext(t *testing.T, c *client.Client, want int64) {
	t.Helper()
	if id, err := c.Next(t.Context(), "order"); err != nil || id != want {
		t.Fatalf("got %d, %v, want %d", id, err, want)
	}
}

func TestNextAndTake(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	var calls, granted atomic.Int64
	c := connect(t, &client.Options{OnCall: func(call client.Call) { calls.Add(1); granted.Add(call.Range.Len()) }}, server)
	wantNext(t, c, 1)
	before := calls.Load()
	if st := c.Stats(); len(st) != 1 || granted.Load() == 0 || granted.Load() != st[0].Issued+st[0].Stock {
		t.Errorf("calls brought %d IDs: %+v", granted.Load(), st)
	}
	for want := int64(2); want < 80; want++ {
		wantNext(t, c, want)
	}
	if n := calls.Load() - before; n != 0 {
		t.Errorf("%d calls for IDs that were in stock", n)
	}
	if got, err := c.Take(t.Context(), "order", nil, 10); err != nil || len(got) != 1 || got[0] != (leaf.Range{Start: 80, End: 90}) {
		t.Errorf("got %v, %v", got, err)
	}
	if id, err := c.Tag("order").Next(t.Context()); err != nil || id != 90 {
		t.Errorf("got %d, %v", id, err)
	}
	if id, err := c.Cursor("order", 5).Next(t.Context()); err != nil || id != 91 {
		t.Errorf("got %d, %v", id, err)
	}
	if st := c.Stats(); len(st) != 1 || st[0].Tag != "order" || st[0].Issued != 95 {
		t.Errorf("stats: %+v", st)
	}
	for tag, want := range map[string]error{"nope": leaf.ErrUnknownTag, "": leaf.ErrInvalid} {
		if _, err := c.Next(t.Context(), tag); !errors.Is(err, want) {
			t.Errorf("tag %q: %v, want %v", tag, err, want)
		}
	}
}

// The next program gets the unused IDs of a program.
func TestCloseGivesBack(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	for i := range int64(5) {
		c := connect(t, nil, server)
		wantNext(t, c, 1+i)
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

// While the server is away not one call fails; afterwards the stock is filled up again.
func TestServerAway(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	c := connect(t, nil, server)
	var ranges drivertest.Ranges
	take := func() {
		id, err := c.Next(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		ranges.Add(leaf.Range{Start: id, End: id + 1})
	}
	refills := func() int64 { return c.Stats()[0].Refills }
	for range 950 { // the next range is fetched
		take()
	}
	for refills() < 2 {
		time.Sleep(time.Millisecond)
	}
	server.Stop()
	for range 500 {
		take()
	}
	failures := func() int64 { return c.Stats()[0].Failures }
	server.Resume(t)
	seen := refills()
	for refills() == seen {
		take()
		time.Sleep(time.Millisecond)
	}
	for range 1000 {
		take()
	}
	t.Logf("%d calls to the server failed", failures())
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

// A frozen server costs no call while another one answers.
func TestFrozenServer(t *testing.T) {
	store := newStore(t)
	one, two := testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})
	one.Hold()
	for range 4 {
		c := connect(t, &client.Options{Hedge: 10 * time.Millisecond, Wait: time.Minute}, one, two)
		if _, err := c.Next(t.Context(), "order"); err != nil {
			t.Error(err)
		}
		if _, err := c.Ordered("", "order").Next(t.Context()); err != nil {
			t.Error(err)
		}
	}
	one.Release()
}

// A server that accepts calls without answering holds a call up for a bounded time only, under any
// context: an ordered one, and the give-back.
func TestFrozenServerEndsCalls(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	c := connect(t, &client.Options{CallTimeout: 100 * time.Millisecond, Wait: time.Minute}, server)
	if _, err := c.Next(t.Context(), "order"); err != nil { // not always 1: a slow machine may cut the first calls
		t.Fatal(err)
	}
	server.Hold()
	defer server.Release()
	if _, err := c.Ordered("", "order").Next(context.Background()); !errors.Is(err, leaf.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	if err := c.Close(context.Background()); err == nil {
		t.Error("a server that does not answer took IDs back")
	}
	if _, err := c.Ordered("", "order").Next(context.Background()); !errors.Is(err, leaf.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Without hedging, a frozen server gets one call; then others do.
func TestFrozenServerWithoutHedging(t *testing.T) {
	store := newStore(t)
	one, two := testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})
	one.Hold()
	defer one.Release()
	for range 4 { // in any order
		c := connect(t, &client.Options{Hedge: -1, CallTimeout: 100 * time.Millisecond, Wait: time.Minute}, one, two)
		if _, err := c.Next(t.Context(), "order"); err != nil {
			t.Error(err)
		}
	}
}

// With no server left a call fails when its time is over, and with its context.
func TestNoServer(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	server.Stop()
	defer server.Resume(t)
	c := connect(t, &client.Options{Wait: 50 * time.Millisecond}, server)
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Ordered("", "order").Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestOrdered(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	one, two := connect(t, nil, server).Ordered("", "order"), connect(t, nil, server).Ordered("segment", "order")
	for want := int64(1); want < 100; want += 4 {
		if id, err := one.Next(t.Context()); err != nil || id != want {
			t.Fatalf("got %d, %v, want %d", id, err, want)
		}
		got, err := two.Take(t.Context(), []leaf.Range{{Start: 1, End: 2}}, 3)
		if err != nil || len(got) != 2 || got[1] != (leaf.Range{Start: want + 1, End: want + 4}) {
			t.Fatalf("got %v, %v, want 3 from %d", got, err, want+1)
		}
	}
	c := connect(t, nil, server)
	for _, g := range []leaf.Generator{c.Ordered("uuid", ""), c.Ordered("", ""), c.Ordered("snowflake", "")} {
		if _, err := g.Next(t.Context()); !errors.Is(err, leaf.ErrInvalid) && !errors.Is(err, leaf.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
		if _, err := g.Take(t.Context(), nil, 0); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("got %v", err)
		}
	}
}

// ofAnother is a tokens file that lacks the program's token.
const ofAnother = "tokens: [{name: another program, hash: 'sha256:0000000000000000000000000000000000000000000000000000000000000000', take: [order]}]"

func TestDenied(t *testing.T) {
	gate := access.New(access.Options{})
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t), Gate: gate})
	c := connect(t, nil, server)
	if _, err := c.Next(t.Context(), "order"); err != nil { // without tokens IDs are open
		t.Fatal(err)
	}
	testgate.Require(t, gate, access.Options{}, ofAnother)
	c = connect(t, &client.Options{Wait: 50 * time.Millisecond}, server)
	for denied := false; !denied; { // the first answer may take longer than that
		_, err := c.Next(t.Context(), "order")
		if denied = errors.Is(err, client.ErrDenied); !errors.Is(err, leaf.ErrExhausted) {
			t.Fatalf("got %v", err)
		}
	}
	if _, err := c.Ordered("", "order").Next(t.Context()); !errors.Is(err, client.ErrDenied) || errors.Is(err, leaf.ErrExhausted) {
		t.Errorf("got %v", err)
	}
}

// A server that does not know the program's token, or not yet, costs no call while another one
// answers.
func TestDeniedByOne(t *testing.T) {
	gate := testgate.New(t, access.Options{}, ofAnother)
	store := newStore(t)
	one, two := testleaf.Start(t, testleaf.Options{Store: store, Gate: gate}), testleaf.Start(t, testleaf.Options{Store: store})
	for range 4 { // in any order
		c := connect(t, &client.Options{Wait: time.Minute}, one, two)
		for range 3 {
			if _, err := c.Next(t.Context(), "order"); err != nil {
				t.Error(err)
			}
			if _, err := c.Ordered("", "order").Next(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	two.Stop()
	c := connect(t, nil, one, two)
	_, err := c.Ordered("", "order").Next(t.Context())
	if !errors.Is(err, client.ErrDenied) || !errors.Is(err, leaf.ErrExhausted) || !strings.Contains(err.Error(), one.Host()) || !strings.Contains(err.Error(), two.Host()) {
		t.Errorf("the error does not tell of both servers: %v", err)
	}
}

func TestPeek(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	c := connect(t, nil, server)
	peek := func(want int64) {
		t.Helper()
		for range 2 {
			if id, err := c.Peek(t.Context(), "order"); err != nil || id != want {
				t.Fatalf("got %d, %v, want %d", id, err, want)
			}
		}
	}
	peek(1) // asks the server
	wantNext(t, c, 1)
	calls := server.Calls("PeekTag")
	peek(2)
	if server.Calls("PeekTag") != calls {
		t.Error("the server was asked for what is in stock")
	}
	if _, err := c.Peek(t.Context(), "nope"); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("got %v", err)
	}
}

// IDs that somebody inserted by hand come neither from this program nor from a server.
func TestObserve(t *testing.T) {
	store := newStore(t)
	servers := []*testleaf.Server{testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})}
	c := connect(t, nil, servers...)
	for _, c := range []*client.Client{c, connect(t, nil, servers[0]), connect(t, nil, servers[1])} {
		if _, err := c.Next(t.Context(), "order"); err != nil {
			t.Fatal(err)
		}
	}
	cursor := c.Cursor("order", 64)
	if _, err := cursor.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	const largest = 50_000
	o, err := c.Observe(t.Context(), "order", largest)
	if err != nil || o.MaxID <= largest || o.Dropped == 0 || o.OthersBelow != largest+1 || o.OthersFor <= 0 {
		t.Fatalf("got %+v, %v", o, err)
	}
	for name, take := range map[string]func() (int64, error){
		"this program":     func() (int64, error) { return c.Next(t.Context(), "order") },
		"its cursor":       func() (int64, error) { return cursor.Next(t.Context()) },
		"the first server": func() (int64, error) { return connect(t, nil, servers[0]).Next(t.Context(), "order") },
		"the last server":  func() (int64, error) { return connect(t, nil, servers[1]).Next(t.Context(), "order") },
	} {
		if id, err := take(); err != nil || id <= largest {
			t.Errorf("%s: got %d, %v", name, id, err)
		}
	}
	if o, err := c.Observe(t.Context(), "order", 7); err != nil || o.Dropped != 0 {
		t.Errorf("below: %+v, %v", o, err)
	}
	servers[0].Stop()
	if o, err := c.Observe(t.Context(), "order", 900_000); err == nil || o.MaxID <= 900_000 {
		t.Errorf("one server was told, the other one not: %+v, %v", o, err)
	}
	for name, c := range map[string]*client.Client{"this program": c, "the server that was told": connect(t, nil, servers[1])} {
		if id, err := c.Next(t.Context(), "order"); err != nil || id <= 900_000 {
			t.Errorf("%s: got %d, %v", name, id, err)
		}
	}
	servers[1].Stop()
	if o, err := c.Observe(t.Context(), "order", 5_000_000); err == nil || o != (client.Observed{}) {
		t.Errorf("no server was told: %+v, %v", o, err)
	}
}

// Two concurrent calls of Close do not take each other's connections.
func TestCloseTwice(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	for i := range int64(10) {
		c := connect(t, nil, server)
		wantNext(t, c, 1+i)
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				if err := c.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
}

// Four programs, two of them behind a relay: no ID comes twice.
func TestUnique(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	db, err := relay.Open([]string{server.URL()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	edge := testleaf.Start(t, testleaf.Options{Store: db.Store(), Route: db.Route})
	var ranges drivertest.Ranges
	var all sync.WaitGroup
	for i, at := range []*testleaf.Server{server, server, edge, edge} {
		c := connect(t, &client.Options{Wait: time.Minute}, at)
		for range 2 {
			all.Go(func() {
				cursor := c.Cursor("order", 10)
				for n := range 2000 {
					id, err := cursor.Next(t.Context())
					got := []leaf.Range{{Start: id, End: id + 1}}
					if n%20 == i {
						got, err = c.Take(t.Context(), "order", nil, 1+n)
					}
					if err != nil {
						t.Error(err)
						return
					}
					if n%20 == i {
						ranges.Add(leaf.Range{Start: id, End: id + 1})
					}
					ranges.Add(got...)
				}
			})
		}
	}
	all.Wait()
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, u := range []string{"", "h:8080", "ftp://h", "http://", "http://a:hunter2@h", "http://h/path", "http://h,", "http://%zz@h", "http://hunter2@h?x=1", "http://h,http://hunter2@h"} {
		c, err := client.New(u, nil)
		if !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%q: %v, %v", u, c, err)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the token is in %v", u, err)
		}
	}
}

func TestNewRefusesOptions(t *testing.T) {
	for name, o := range map[string]client.Options{
		"two tokens":       {Token: "a", TokenFile: "b"},
		"negative budget":  {OutageBudget: -1},
		"negative stock":   {MaxStock: -1},
		"negative wait":    {Wait: -1},
		"negative timeout": {CallTimeout: -1},
	} {
		if c, err := client.New("http://h", &o); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, c, err)
		}
	}
	if c, err := client.New("http://hunter2@h", &client.Options{Token: "b"}); !errors.Is(err, leaf.ErrInvalid) || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("two tokens: %v, %v", c, err)
	}
}
