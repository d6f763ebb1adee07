package respapi_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/respapi"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// Commands with too few or too many words, and the longest ones that are taken.
func TestCommandEdges(t *testing.T) {
	c := serve(t, nil).dial(t)
	const unknownSub, names = "-ERR unknown subcommand or wrong number of arguments", "-ERR Client names cannot"
	x := strings.Repeat("x", 300)
	for _, tt := range []struct{ command, want string }{
		{"PING a b", "-ERR wrong number of arguments for 'ping' command"},
		{"ECHO", "-ERR wrong number of arguments for 'echo' command"},
		{"LEAF.NEXT segment", "-ERR wrong number of arguments for 'leaf.next' command"},
		{"LEAF.NEXT segment order COUNT 1 2", "-ERR syntax error"},
		{"LEAF.NEXT segment order NUMBER 1", "-ERR syntax error"},
		{"SET order 0 NX EX 3", "nil"},
		{"SET order 0 EX 3", "-ERR a counter is not set here"},
		{"AUTH a b c", "-ERR syntax error"},
		{"CLIENT ID x", unknownSub}, {"CLIENT GETNAME x", unknownSub}, {"CLIENT SETNAME", unknownSub}, {"CLIENT SETNAME a b", unknownSub},
		{"CLIENT SETINFO LIB-NAME", unknownSub}, {"CLIENT INFO x", unknownSub}, {"CLIENT LIST x", unknownSub}, {"CLIENT NO-EVICT", unknownSub},
		{"CLIENT NO-TOUCH", unknownSub}, {"CLIENT REPLY", unknownSub}, {"CLIENT REPLY OFF", unknownSub}, {"CLIENT REPLY ON x", unknownSub},
		{"CLIENT KILL ON", unknownSub}, {"CLIENT KILL x", unknownSub},
		{"CLIENT REPLY on", "+OK"}, {"CLIENT NO-EVICT ON", "+OK"}, {"CLIENT NO-TOUCH OFF", "+OK"},
		{"CLIENT SETNAME !~", "+OK"}, {"CLIENT SETNAME a\x7f", names}, {"CLIENT SETNAME \" \"", names},
		{"CLIENT SETNAME " + x[:256], "+OK"}, {"CLIENT SETNAME " + x[:257], names + " be longer than 256 characters."},
		{"CLIENT SETINFO LIB-NAME go", "+OK"}, {"CLIENT SETINFO LIB-VER 9", "+OK"}, {"CLIENT SETINFO LIB-VER \"9 0\"", names},
		{"HELLO 3 AUTH a", "-ERR Syntax error in HELLO option 'AUTH'"}, {"HELLO 3 SETNAME", "-ERR Syntax error in HELLO option 'SETNAME'"},
		{"HELLO 3 SETNAME \"a b\"", names}, {"HELLO 1", "-NOPROTO"}, {"HELLO 2 SETNAME me", "[server redis version 7.4.0 proto :2"},
		{x[:17], "-ERR unknown command '" + x[:17] + "'; this server"}, {x[:64], "-ERR unknown command '" + x[:64] + "'; this server"},
		{x[:65], "-ERR unknown command '" + x[:64] + "…'; this server"}, {"a\x7fb", "-ERR unknown command 'a?b'"}, {"a\x01b", "-ERR unknown command 'a?b'"}, {`"a'b c"`, "-ERR unknown command 'a?b c'"},
		{"COMMAND COUNT", ":17"}, {"COMMAND LIST", "[incr incrby leaf.next "}, {"COMMAND NOTHING", "-ERR unknown subcommand 'NOTHING'"},
		{"COMMAND DOCS", "[incr [summary Takes the next ID of a tag."}, {"COMMAND INFO get", "[[get :2 [+readonly +fast] :1 :1 :1 [+@string] [] [] []]]"},
		{"CONFIG GET save s*", "[save ]"}, {"CONFIG GET", "-ERR this server answers CONFIG GET"},
	} {
		c.send(tt.command + "\r\n")
		if got := c.reply(); !strings.HasPrefix(got, tt.want) || tt.want == "nil" && got != "nil" || strings.HasSuffix(tt.want, "]") && got != tt.want {
			t.Errorf("%.40q: %q, want %q", tt.command, got, tt.want)
		}
	}
	if got := c.do("CLIENT", "LIST"); !strings.HasSuffix(got, " name=me db=0 resp=2 lib-name=go lib-ver=9\n") {
		t.Errorf("the connection is %q", got)
	}
}

// COMMAND lists all commands, in every form, and again; its lists are those of the protocol.
func TestCommandLists(t *testing.T) {
	c := serve(t, nil).dial(t)
	for version, begin := range map[string]string{"2": "[[incr :2 [+write +fast]", "3": "[[incr :2 (+write +fast)"} {
		c.do("HELLO", version)
		list := c.do("COMMAND")
		if !strings.HasPrefix(list, begin) || strings.Count(list, "+@") != 17 {
			t.Errorf("RESP%s: %q", version, list)
		}
		if c.do("COMMAND") != list || c.do("COMMAND", "INFO") != list {
			t.Errorf("RESP%s: the second list is another", version)
		}
	}
	c.do("HELLO", "3")
	if got := c.do("COMMAND", "INFO", "nothing"); got != "[_]" {
		t.Errorf("nothing is %q", got)
	}
}

// INFO has the requested sections.
func TestInfoSections(t *testing.T) {
	c := serve(t, nil).dial(t)
	for command, want := range map[string]bool{"INFO": true, "INFO all": true, "INFO default": true, "INFO everything": true, "INFO server stats": false} {
		c.send(command + "\r\n")
		got := c.reply()
		if strings.Contains(got, "\r\n\r\n# Clients\r\nconnected_clients:1\r\n") != want || !strings.HasPrefix(got, "# Server\r\n") || !strings.Contains(got, "\r\n\r\n# Stats\r\n") {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// Each command counts once: alone, in a run, where it waits for the store, and with an error, in INFO
// and in the metrics.
func TestCommandsAreCounted(t *testing.T) {
	requests := telemetry.NewFrontEnds(nil)
	f := serve(t, func(o *options) { o.requests = requests })
	c := f.dial(t)
	c.send(command("INCR", "order")) // which waits for the store
	c.reply()
	const runs, each = 3, 20
	for range runs {
		c.send(strings.Repeat(command("INCR", "order"), each-1) + command("NOTHING"))
		for range each {
			c.reply()
		}
	}
	_ = c.Close()
	other := f.dial(t)
	asked, total := 0, ""
	for range 5000 {
		asked++
		info := other.do("INFO", "stats")
		if total = fmt.Sprintf("total_commands_processed:%d\r\n", 1+runs*each+asked); strings.Contains(info, total) {
			break
		} else if asked == 5000 {
			t.Errorf("got %q, want %q", info, total)
		}
		time.Sleep(time.Millisecond)
	}
	other.do("PING") // the metrics have all before it
	counted := prometheus.NewRegistry()
	counted.MustRegister(telemetry.NewCollector(telemetry.Sources{Health: func() health.Report { return health.Report{} }, Requests: requests}))
	families, err := counted.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families {
		if got := m.GetMetric()[0].GetHistogram().GetSampleCount(); m.GetName() == "leaf_request_duration_seconds" && got-uint64(1+runs*each+asked) > 1 {
			t.Errorf("the metrics have %d commands, want %d", got, 1+runs*each+asked)
		}
	}
}

// A run of INCRs is one caller's, and one tag's: later commands need a permit of their own.
func TestRunPermitsItself(t *testing.T) {
	g := serveGuarded(t, nil)
	c := g.dial(t)
	for _, tag := range []string{"order", "user"} { // the stock of both is there from now on
		if got := c.do("INCR", tag); got != ":1" {
			t.Fatal(got)
		}
	}
	g.require(t)
	if got := c.do("AUTH", g.token); got != "+OK" {
		t.Fatal(got)
	}
	c.send(strings.Repeat(command("INCR", "order"), 3) + strings.Repeat(command("INCR", "user"), 3))
	for _, want := range []string{":2", ":3", ":4", "-NOPERM ", "-NOPERM ", "-NOPERM "} {
		if got := c.reply(); !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A run beyond a limit is served as far as it goes, also where the stock holds it. More than the quota
// of a day is refused for ever.
func TestLimitOfARun(t *testing.T) {
	gate := access.New(access.Options{Limits: access.Limits{Tags: map[string]access.Limit{"order": {Quota: 5}}}})
	c := serve(t, func(o *options) { o.access = gate }).dial(t)
	if got := c.do("INCR", "order"); got != ":1" {
		t.Fatal(got)
	}
	c.send(strings.Repeat(command("INCR", "order"), 20))
	for i := range 20 {
		want := "-TRYAGAIN "
		if i < 4 {
			want = fmt.Sprint(":", i+2)
		}
		if got := c.reply(); !strings.HasPrefix(got, want) {
			t.Errorf("reply %d: %q, want %q", i+1, got, want)
		}
	}
	if got := c.do("INCRBY", "order", "6"); !strings.HasPrefix(got, "-ERR over a limit") {
		t.Errorf("more than the quota: %q", got)
	}
}

// An address that has sent many wrong tokens has to wait.
func TestManyWrongTokens(t *testing.T) {
	g := serveGuarded(t, nil)
	g.require(t)
	c := g.dial(t)
	for range 1000 {
		got := c.do("AUTH", "wrong")
		if strings.HasPrefix(got, "-TRYAGAIN ") {
			return
		}
		if !strings.HasPrefix(got, "-WRONGPASS ") {
			t.Fatalf("got %q", got)
		}
	}
	t.Error("a thousand wrong tokens are taken")
}

// Clients without a token have the limits of their addresses.
func TestLimitOfAnAddress(t *testing.T) {
	gate := access.New(access.Options{Limits: access.Limits{Client: access.Limit{Quota: 1}}})
	f := serve(t, func(o *options) { o.access = gate })
	for i, tt := range []struct{ from, want string }{{"127.0.0.1", ":1"}, {"127.0.0.2", ":2"}, {"127.0.0.1", "-TRYAGAIN "}} {
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(tt.from)}}
		conn, err := dialer.Dial("tcp", f.addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := &client{t, conn, bufio.NewReader(conn)}
		if got := c.do("INCR", "order"); !strings.HasPrefix(got, tt.want) {
			t.Errorf("client %d: %q, want %q", i, got, tt.want)
		}
	}
}

// A server refuses clients beyond its limit, and those without TLS where that is needed.
func TestServer(t *testing.T) {
	pair, err := tls.LoadX509KeyPair(testserver.Certificate(t))
	if err != nil {
		t.Fatal(err)
	}
	for want, secure := range map[string]*tls.Config{
		"-ERR max number of clients reached\r\n": nil,
		"-ERR connect with TLS\r\n":              {Certificates: []tls.Certificate{pair}},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		s := respapi.Server(&frontend.Options{
			IDs: issuer.New(map[string]issuer.Source{}, &issuer.Options{MaxBatch: 1}), Access: access.New(access.Options{Local: true}),
			Batches: frontend.NewBatchLimiter(), Context: context.Background(), Conns: conns.Options{MaxConns: 1}, TLS: secure,
		})
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		var first net.Conn
		if secure == nil {
			if first, err = net.Dial("tcp", l.Addr().String()); err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(first, "PING\r\n")
			if got, err := bufio.NewReader(first).ReadString('\n'); got != "+PONG\r\n" {
				t.Errorf("got %q, %v", got, err)
			}
		}
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if secure != nil {
			fmt.Fprint(conn, "PING\r\n")
		}
		got := make([]byte, len(want))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		for _, c := range []net.Conn{conn, first} {
			if c != nil {
				_ = c.Close()
			}
		}
		s.Close()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// INCRs of two tags in turn allocate nothing, either.
func TestAllocationsOfTwoTags(t *testing.T) {
	sessions := make(chan conns.Session, 2)
	f := serve(t, func(o *options) {
		o.step = 1_000_000
		o.wrap = func(handle conns.Handler) conns.Handler {
			return func(c *conns.Conn) conns.Session {
				s := handle(c)
				sessions <- s
				return s
			}
		}
	})
	if err := f.store.Create(t.Context(), segment.Tag{Name: "user", MaxID: 1, Step: 1_000_000}); err != nil {
		t.Fatal(err)
	}
	c := f.dial(t)
	for _, tag := range []string{"order", "user"} {
		if got := c.do("INCR", tag); got != ":1" {
			t.Fatal(got)
		}
	}
	<-sessions
	f.dial(t)
	served := <-sessions
	ask, out := []byte(strings.Repeat(command("INCR", "order")+command("INCR", "user"), 10)), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(1000, func() {
		if taken, _ := served.Serve(ask, out); taken != len(ask) {
			t.Fatalf("%d bytes of %d were taken", taken, len(ask))
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
	f.conns.Close()
}
