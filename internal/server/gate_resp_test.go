package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/server"
)

// respCalls are the commands that take IDs, or could tell whether a tag exists.
var respCalls = []string{"INCR %s", "INCRBY %s 3", "LEAF.NEXT segment %s", "LEAF.NEXT segment %s COUNT 2", "SETNX %s 1", "SET %s 1 NX"}

// The Redis protocol also needs a token, and a token grants its rights only. The answers for
// existing and unknown tags are the same.
func TestTokensOverRESP(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"shop": `take: ["order*"]`, "others": `take: ["user.*"]`, "viewer": `rights: [read]`})
	r := run(t, nil, func(o *server.Options) { withRESP(o); o.Config.TokensFile = file })
	conn, in := r.dialRESP(t)
	ask := func(command string) string {
		t.Helper()
		fmt.Fprint(conn, command+"\r\n")
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", command, err)
		}
		return strings.TrimSpace(line)
	}
	refused := func(prefix string) {
		t.Helper()
		for _, call := range respCalls {
			exists, missing := ask(fmt.Sprintf(call, "order")), ask(fmt.Sprintf(call, "missing"))
			if !strings.HasPrefix(exists, prefix) || missing != exists {
				t.Errorf("%s: %s for a tag that exists, %s for one that does not, want %s", call, exists, missing, prefix)
			}
		}
	}
	refused("-NOAUTH")
	for _, command := range []string{"PING", "INFO", "COMMAND", "CONFIG GET *", "CLIENT ID", "UNKNOWN", "HELLO 3"} {
		if got := ask(command); !strings.HasPrefix(got, "-NOAUTH") {
			t.Errorf("%s without a token: %s", command, got)
		}
	}
	if got := ask("AUTH leaf_wrong"); !strings.HasPrefix(got, "-WRONGPASS") {
		t.Errorf("AUTH: %s", got)
	}
	refused("-NOAUTH")
	for _, name := range []string{"others", "viewer"} {
		if got := ask("AUTH " + tokens[name]); got != "+OK" {
			t.Fatalf("AUTH: %s", got)
		}
		refused("-NOPERM")
	}
	if n := r.store.Calls(drivertest.OpAdvance); n != 0 {
		t.Errorf("the store was asked for IDs %d times", n)
	}
	if got := ask("AUTH default " + tokens["shop"]); got != "+OK" {
		t.Fatalf("AUTH: %s", got)
	}
	if got := ask("INCR order"); got != ":1" {
		t.Errorf("INCR: %s", got)
	}
	if got := ask("INCR other"); !strings.HasPrefix(got, "-NOPERM") {
		t.Errorf("INCR of another tag: %s", got)
	}
	delete(tokens, "shop")
	writeTokens(t, file, tokens, map[string]string{"others": `take: ["user.*"]`})
	if err := r.server.Reload(); err != nil {
		t.Fatal(err)
	}
	refused("-NOAUTH") // the token was withdrawn while the connection was open
}

func TestLimitsOverRESP(t *testing.T) {
	r := run(t, nil, func(o *server.Options) { withRESP(o); o.Config.Limits.Client.Quota = 5 })
	conn, in := r.dialRESP(t)
	fmt.Fprint(conn, strings.Repeat("INCR order\r\n", 4)+"INCRBY order 6\r\nINCRBY order 2\r\nINCR order\r\nINCR order\r\n")
	for i, want := range []string{":1", ":2", ":3", ":4", "-ERR over a limit: 5 IDs a day", "-TRYAGAIN over a limit", ":5", "-TRYAGAIN over a limit"} {
		line, err := in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("answer %d: %q, %v, want %s", i, line, err, want)
		}
	}
}
