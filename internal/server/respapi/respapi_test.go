package respapi_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

// TestCommands is one connection, whose commands follow one another.
func TestCommands(t *testing.T) {
	c := serve(t, nil).dial(t)
	for _, tt := range []struct{ command, want string }{
		{"PING", "+PONG"},
		{"ping hello", "hello"},
		{"ECHO hello", "hello"},
		{"INCR order", ":1"},
		{"incr order", ":2"},
		{"LEAF.NEXT segment order", "3"},
		{"LEAF.NEXT segment order COUNT 3", "[4 5 6]"},
		{"INCR order", ":7"},
		{"INCRBY order 10", ":17"},
		{"INCRBY order 1", ":18"},
		{"INCRBY order 1000", ":1018"}, // more than a step
		{"INCR order", ":1019"},
		{"INCRBY order 0", "-ERR a counter goes up by 1 to 1000000 at once"},
		{"INCRBY order -1", "-ERR a counter goes up by 1 to 1000000 at once"},
		{"INCRBY order 1000001", "-ERR a counter goes up by 1 to 1000000 at once"},
		{"INCRBY order x", "-ERR value is not an integer or out of range"},
		{"INCRBY order 99999999999999999999", "-ERR value is not an integer or out of range"},
		{"INCRBY nothing 5", `-ERR tag "nothing": unknown tag`},
		{"INCR nothing", `-ERR tag "nothing": unknown tag`},
		{"SETNX order 0", ":0"},
		{"SETNX nothing 0", `-ERR tag "nothing": unknown tag`},
		{"SET order 0 NX", "nil"},
		{"SET order 0 EX 3 NX", "nil"},
		{"SET order 0", "-ERR a counter is not set here"},
		{"GET order", "-ERR a counter is not read here"},
		{"GET nothing", "-ERR a counter is not read here"},
		{"LEAF.NEXT segment order COUNT", "-ERR syntax error"},
		{"LEAF.NEXT segment order COUNT x", "-ERR value is not an integer"},
		{"LEAF.NEXT segment order COUNT 0", "-ERR invalid argument: 0 IDs at once; ask for 1 to 10000"},
		{"LEAF.NEXT segment order COUNT 10001", "-ERR invalid argument: 10001 IDs at once"},
		{"LEAF.NEXT nothing order", "-ERR scheme not enabled"},
		{"INCR", "-ERR wrong number of arguments for 'incr' command"},
		{"INCR order 5", "-ERR wrong number of arguments for 'incr' command"},
		{"NOTHING order", "-ERR unknown command 'NOTHING'; this server gives IDs: INCR"},
		{"DECR order", "-ERR unknown command 'DECR'; a counter only goes up"},
		{"decrby order 2", "-ERR unknown command 'decrby'; a counter only goes up"},
		{"DEL order", "-ERR unknown command 'DEL'; an administrator deletes tags"},
		{"MULTI", "-ERR unknown command 'MULTI'; there are no transactions"},
		{"EXEC", "-ERR unknown command 'EXEC'; there are no transactions"},
		{"SELECT 0", "+OK"},
		{"SELECT 1", "-ERR DB index is out of range"},
		{"AUTH secret", "-ERR Client sent AUTH, but no password is set."},
		{"AUTH default secret", "+OK"},
		{"CLIENT GETNAME", "nil"},
		{"CLIENT SETNAME me", "+OK"},
		{"CLIENT GETNAME", "me"},
		{"CLIENT SETNAME \"a b\"", "-ERR Client names cannot contain spaces"},
		{"CLIENT SETINFO LIB-NAME test", "+OK"},
		{"CLIENT SETINFO lib-ver 1.0", "+OK"},
		{"CLIENT SETINFO LIB-X 1", "-ERR Unrecognized option 'LIB-X'"},
		{"CLIENT ID", ":1"},
		{"CLIENT INFO", "id=1 addr="},
		{"CLIENT TRACKING ON", "-ERR unknown subcommand"},
		{"CONFIG GET save", "[save ]"},
		{"CONFIG GET app* databases", "[appendonly no databases 1]"},
		{"CONFIG GET [", "[]"},
		{"CONFIG SET save 1", "-ERR this server answers CONFIG GET"},
		{"COMMAND COUNT", ":"},
		{"COMMAND INFO incr nothing", "[[incr :2 [+write +fast] :1 :1 :1 [+@string] [] [] []] nil array]"},
		{"COMMAND DOCS incr nothing", "[incr [summary Takes the next ID of a tag. since 1.0.0 group string]]"},
		{"HELLO 4", "-NOPROTO unsupported protocol version"},
		{"HELLO x", "-ERR Protocol version is not an integer"},
		{"HELLO 3 NAME x", "-ERR Syntax error in HELLO option 'NAME'"},
		{"HELLO", "[server redis version 7.4.0 proto :2 id :1 mode standalone role master modules []]"},
		{"HELLO 3 SETNAME you", "{server redis version 7.4.0 proto :3 id :1 mode standalone role master modules []}"},
		{"CLIENT GETNAME", "you"},
		{"SET order 0 NX", "_"},
		{"INCR order", ":1020"},
		{"CONFIG GET save", "{save }"},
		{"COMMAND INFO incr", "[[incr :2 (+write +fast) :1 :1 :1 (+@string) [] [] []]]"},
		{"INFO server", "txt:# Server\r\nredis_version:7.4.0"},
		{"RESET", "+RESET"},
		{"CLIENT GETNAME", "nil"},
		{"INFO server clients", "# Server\r\nredis_version:7.4.0"},
		{"INFO nothing", ""},
	} {
		c.send(tt.command + "\r\n")
		if got := c.reply(); got != tt.want && (!strings.HasPrefix(got, tt.want) || tt.want == "") {
			t.Errorf("%s: %q, want %q", tt.command, got, tt.want)
		}
	}
	c.send("QUIT\r\nINCR order\r\n")
	c.wantEnd("+OK\r\n")
}

// Replies come in the order of the commands, however they are batched.
func TestPipeline(t *testing.T) {
	c := serve(t, nil).dial(t)
	var ask, want strings.Builder
	id := 0
	for i := range 100_000 {
		switch {
		case i%1000 == 999:
			ask.WriteString(command("PING"))
			want.WriteString("+PONG\r\n")
		case i%1000 == 998:
			ask.WriteString("INCR order\r\n")
			id++
			fmt.Fprintf(&want, ":%d\r\n", id)
		default:
			ask.WriteString(command("INCR", "order"))
			id++
			fmt.Fprintf(&want, ":%d\r\n", id)
		}
	}
	c.send(ask.String()) // as many libraries do, all before the first reply is read
	got := make([]byte, want.Len())
	for n := 0; n < len(got); {
		m, err := c.Read(got[n:])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	if string(got) != want.String() {
		w := want.String()
		i := 0
		for got[i] == w[i] {
			i++
		}
		t.Errorf("the replies are not 1, 2, 3, …: 328 is at %d; from byte %d on %.80q, want %.80q", strings.Index(string(got), ":328\r\n"), i, got[max(0, i-20):], w[max(0, i-20):])
	}
}

// Of a run of INCRs beyond the last number of a tag the first ones have the numbers before.
func TestStrictRunOverTheEnd(t *testing.T) {
	f := serve(t, nil)
	tag := segment.Tag{Name: "strict", MaxID: math.MaxInt64 - 5, Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}
	if err := f.store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	c := f.dial(t)
	if got := c.do("INCR", "strict"); !strings.HasPrefix(got, ":") {
		t.Fatal(got)
	}
	c.send(strings.Repeat(command("INCR", "strict"), 6) + command("PING"))
	for i := range int64(6) {
		want := fmt.Sprintf(":%d", math.MaxInt64-4+i)
		if i > 3 {
			want = "-ERR"
		}
		if got := c.reply(); i <= 3 && got != want || !strings.HasPrefix(got, want) {
			t.Errorf("%d: %s, want %s", i, got, want)
		}
	}
	if got := c.reply(); got != "+PONG" {
		t.Error(got)
	}
}

// INCRs of one pipeline for a tag with strict order share a call to the store, which each of them
// would have to wait for, and its failure.
func TestStrictRun(t *testing.T) {
	f := serve(t, nil)
	tag := segment.Tag{Name: "strict", MaxID: 1, Step: 1, Options: segment.TagOptions{segment.OptionOrder: segment.OrderStrict}}
	if err := f.store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	c := f.dial(t)
	if got := c.do("INCR", "strict"); got != ":1" {
		t.Fatalf("got %s", got)
	}
	before := len(f.store.Granted("strict"))
	c.send(strings.Repeat(command("INCR", "strict"), 100) + command("PING"))
	for n := range 100 {
		if got := c.reply(); got != fmt.Sprint(":", n+2) {
			t.Fatalf("reply %d is %s", n, got)
		}
	}
	if got := c.reply(); got != "+PONG" {
		t.Errorf("the reply after the run is %s", got)
	}
	if calls := len(f.store.Granted("strict")) - before; calls < 1 || calls > 3 { // one for each read of the pipeline
		t.Errorf("100 INCRs took %d calls to the store", calls)
	}
	if all := f.store.Granted("strict"); all[len(all)-1].End != 102 {
		t.Errorf("granted %v", all)
	}
	if err := f.store.Delete(t.Context(), "strict"); err != nil {
		t.Fatal(err)
	}
	c.send(strings.Repeat(command("INCR", "strict"), 3) + command("PING"))
	for range 3 {
		if got := c.reply(); !strings.HasPrefix(got, "-") {
			t.Errorf("INCR of a deleted tag: %s", got)
		}
	}
	if got := c.reply(); got != "+PONG" {
		t.Errorf("the reply after the failed run is %s", got)
	}
}
