package respapi_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/segment"
)

// A guarded is a server that wants a token.
type guarded struct {
	*fixture
	gate  *access.Gate
	token string // takes IDs of order
}

func serveGuarded(t *testing.T, edit func(*options)) guarded {
	t.Helper()
	g := guarded{gate: access.New(access.Options{Local: true}), token: access.NewToken()}
	g.fixture = serve(t, func(o *options) {
		o.access = g.gate
		if edit != nil {
			edit(o)
		}
	})
	if err := g.store.Store.(segment.Catalog).Create(t.Context(), segment.Tag{Name: "user", MaxID: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	return g
}

// require has the server want tokens from now on.
func (g *guarded) require(t *testing.T) {
	t.Helper()
	testgate.Require(t, g.gate, access.Options{Local: true}, fmt.Sprintf("tokens:\n- {name: orders, hash: %q, take: [order]}\n", access.HashToken(g.token)))
}

// taking are the commands that ask for a tag.
var taking = []string{"INCR %s", "INCRBY %s 3", "LEAF.NEXT segment %s", "LEAF.NEXT segment %s COUNT 3", "LEAF.NEXT uuid %s", "SETNX %s 0", "SET %s 0 NX", "GET %s"}

// Without a token nothing is taken, and nothing is learnt.
func TestNoToken(t *testing.T) {
	g := serveGuarded(t, nil)
	g.require(t)
	c := g.dial(t)
	for _, command := range append(taking, "PING", "ECHO x", "SELECT 0", "CLIENT ID", "COMMAND", "CONFIG GET *", "INFO", "DECR %s", "NOTHING", "INCR") {
		if strings.Contains(command, "%s") {
			command = fmt.Sprintf(command, "order")
		}
		c.send(command + "\r\n")
		if got := c.reply(); got != "-NOAUTH Authentication required." {
			t.Errorf("%s: %q", command, got)
		}
	}
	if got := c.do("HELLO", "3"); !strings.HasPrefix(got, "-NOAUTH HELLO must be called") {
		t.Errorf("HELLO: %q", got)
	}
	for _, command := range [][]string{{"AUTH", "wrong"}, {"AUTH", "user", "wrong"}, {"HELLO", "3", "AUTH", "user", "wrong"}} {
		if got := c.do(command...); !strings.HasPrefix(got, "-WRONGPASS ") {
			t.Errorf("%q: %q", command, got)
		}
	}
	c.send("*2\r\n$20000\r\n")
	c.wantEnd("-ERR Protocol error: invalid bulk length\r\n")
}

// A token allows its own commands only. The answer to all others is the same for existing and
// unknown tags.
func TestToken(t *testing.T) {
	g := serveGuarded(t, nil)
	g.require(t)
	for _, login := range [][]string{{"AUTH", g.token}, {"AUTH", "anyone", g.token}, {"HELLO", "2", "AUTH", "anyone", g.token}} {
		c := g.dial(t)
		if got := c.do(login...); strings.HasPrefix(got, "-") {
			t.Fatalf("%s: %q", login[0], got)
		}
		for _, command := range taking {
			if strings.Contains(command, "uuid") {
				continue
			}
			c.send(fmt.Sprintf(command, "order") + "\r\n" + fmt.Sprintf(command, "user") + "\r\n" + fmt.Sprintf(command, "nothing") + "\r\n")
			mine, others, missing := c.reply(), c.reply(), c.reply()
			if strings.HasPrefix(mine, "-") && command != "GET %s" {
				t.Errorf("%s of order: %q", command, mine)
			}
			if !strings.HasPrefix(others, "-NOPERM ") || others != missing {
				t.Errorf("%s of others: %q, %q of one that does not exist", command, others, missing)
			}
		}
		if got := c.do("RESET"); got != "+RESET" {
			t.Error(got)
		}
		if got := c.do("INCR", "order"); got != "-NOAUTH Authentication required." {
			t.Errorf("after RESET: %q", got)
		}
	}
}

// After tokens become required, open connections have to show one.
func TestTokensFromNowOn(t *testing.T) {
	g := serveGuarded(t, nil)
	c := g.dial(t)
	if got := c.do("INCR", "order"); got != ":1" {
		t.Error(got)
	}
	g.require(t)
	for _, command := range [][]string{{"INCR", "order"}, {"PING"}, {"INFO"}} {
		if got := c.do(command...); got != "-NOAUTH Authentication required." {
			t.Errorf("%q: %q", command, got)
		}
	}
	c.send(strings.Repeat(command("INCR", "order"), 3))
	for range 3 {
		if got := c.reply(); got != "-NOAUTH Authentication required." {
			t.Errorf("a batch: %q", got)
		}
	}
	if got := c.do("AUTH", g.token); got != "+OK" {
		t.Error(got)
	}
	if got := c.do("INCR", "order"); got != ":2" {
		t.Error(got)
	}
}

// A connection that has shown a token keeps its rights when tokens become required.
func TestTokenShownBefore(t *testing.T) {
	g := serveGuarded(t, nil)
	var clients []*client
	for _, login := range [][]string{{"AUTH", "user", g.token}, {"HELLO", "3", "AUTH", "user", g.token}} {
		c := g.dial(t)
		if got := c.do(login...); strings.HasPrefix(got, "-") {
			t.Fatalf("%q: %q", login, got)
		}
		clients = append(clients, c)
	}
	g.require(t)
	for i, c := range clients {
		if got, want := c.do("INCR", "order"), fmt.Sprintf(":%d", i+1); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := c.do("INCR", "user"); !strings.HasPrefix(got, "-NOPERM ") {
			t.Errorf("a tag of others: %q", got)
		}
	}
}

// A connection from before a limit counts as its address, like a later one.
func TestLimitFromNowOn(t *testing.T) {
	gate := access.New(access.Options{})
	f := serve(t, func(o *options) { o.access = gate })
	before := f.dial(t)
	if got := before.do("INCR", "order"); got != ":1" {
		t.Error(got)
	}
	limit, err := gate.Prepare(false, access.Limits{Client: access.Limit{Quota: 1}}, "")
	if err != nil {
		t.Fatal(err)
	}
	limit()
	if got := before.do("INCR", "order"); got != ":2" {
		t.Errorf("within the limit: %q", got)
	}
	if got := f.dial(t).do("INCR", "order"); !strings.HasPrefix(got, "-TRYAGAIN ") {
		t.Errorf("another connection of the address, over the limit: %q", got)
	}
}

// A batch that a limit does not allow as a whole is served as far as it goes.
func TestLimit(t *testing.T) {
	gate := access.New(access.Options{Limits: access.Limits{Tags: map[string]access.Limit{"order": {Rate: 1, Burst: 5}}}})
	c := serve(t, func(o *options) { o.access = gate }).dial(t)
	c.send(strings.Repeat(command("INCR", "order"), 100))
	served := 0
	for i := range 100 {
		got := c.reply()
		switch {
		case got == fmt.Sprintf(":%d", served+1):
			served++
		case i < 5 || !strings.HasPrefix(got, "-TRYAGAIN "):
			t.Errorf("reply %d: %q", i+1, got)
		}
	}
	if served < 5 || served > 50 {
		t.Errorf("%d of 100 were served, want 5 or so", served)
	}
}

// A connection without a token does not stay.
func TestUnknownCallerIsCutOff(t *testing.T) {
	g := serveGuarded(t, func(o *options) { o.conns.RequestTimeout = 100 * time.Millisecond })
	known := g.dial(t)
	if got := known.do("PING"); got != "+PONG" {
		t.Error(got)
	}
	g.require(t)
	g.dial(t).wantEnd("")
	if got := known.do("AUTH", g.token); got != "+OK" {
		t.Error(got)
	}
}

// Permission for one caller's run of commands does not pass to the next caller.
func TestRowEndsWithItsCaller(t *testing.T) {
	g := serveGuarded(t, nil)
	hold := make(chan struct{})
	g.store.Plan(drivertest.Only(drivertest.OpAdvance, drivertest.Fault{Hold: hold}))
	c := g.dial(t)
	c.send(strings.Repeat(command("INCR", "order"), 3)) // the first one waits
	for g.store.Calls(drivertest.OpAdvance) == 0 {
		time.Sleep(time.Millisecond)
	}
	g.require(t)
	close(hold)
	for _, want := range []string{":1", "-NOAUTH Authentication required.", "-NOAUTH Authentication required."} {
		if got := c.reply(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := c.do("AUTH", g.token); got != "+OK" {
		t.Error(got)
	}
	if got := c.do("INCR", "user"); !strings.HasPrefix(got, "-NOPERM ") {
		t.Errorf("a tag of others: %q", got)
	}
}
