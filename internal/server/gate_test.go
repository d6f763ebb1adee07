package server_test

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/testserver"
)

// tokensFile writes a tokens file with one entry for each kind of rights, and returns its
// path and the tokens by their names.
func tokensFile(t *testing.T, rights map[string]string) (path string, tokens map[string]string) {
	t.Helper()
	path, tokens = filepath.Join(t.TempDir(), "tokens.yaml"), make(map[string]string)
	writeTokens(t, path, tokens, rights)
	return path, tokens
}

func writeTokens(t *testing.T, path string, tokens, rights map[string]string) {
	t.Helper()
	text := []string{"tokens:"}
	for _, name := range slices.Sorted(maps.Keys(rights)) {
		tokens[name] = access.NewToken()
		text = append(text, fmt.Sprintf("- {name: %s, hash: %q, %s}", name, access.HashToken(tokens[name]), rights[name]))
	}
	if err := os.WriteFile(path, []byte(strings.Join(text, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A call is one thing that a caller may ask a front end for.
type call struct {
	name         string
	method, path string // {key} becomes a tag
	body         string // JSON of Connect; likewise
	right        access.Right
}

// calls are those of all front ends on the HTTP port.
var calls = []call{
	{"java", "GET", "/api/segment/get/{key}", "", access.Take},
	{"java batch", "GET", "/api/segment/get/{key}?n=3", "", access.Take},
	{"java bad batch", "GET", "/api/segment/get/{key}?n=x", "", access.Take},
	{"java post", "POST", "/api/segment/get/{key}", "", access.Take},
	{"java head", "HEAD", "/api/segment/get/{key}", "", access.Take},
	{"java, two slashes", "GET", "//api/segment/get/{key}/", "", access.Take},
	{"scheme that is off", "GET", "/api/snowflake/get/{key}", "", access.Take},
	{"v1", "GET", "/v1/ids/segment/{key}", "", access.Take},
	{"v1 batch", "GET", "/v1/ids/segment/{key}?n=3", "", access.Take},
	{"v1 ranges", "POST", "/v1/ids/segment/{key}?n=3&ranges=1", "", access.Take},
	{"v1 bad batch", "GET", "/v1/ids/segment/{key}?n=x", "", access.Take},
	{"v1 head", "HEAD", "/v1/ids/segment/{key}", "", access.Take},
	{"v1, scheme that is off", "GET", "/v1/ids/uid/{key}", "", access.Take},
	{"v1 decode", "GET", "/v1/decode/1", "", access.Take | access.Read},
	{"connect", "POST", "/leaf.v1.LeafService/Next", `{"key":"{key}"}`, access.Take},
	{"connect batch", "POST", "/leaf.v1.LeafService/Take", `{"key":"{key}","count":3}`, access.Take},
	{"connect bad batch", "POST", "/leaf.v1.LeafService/Take", `{"key":"{key}","count":-3}`, access.Take},
	{"create", "POST", "/leaf.v1.AdminService/CreateTag", `{"name":"{key}","step":"1"}`, access.Admin},
	{"alter", "POST", "/leaf.v1.AdminService/AlterTag", `{"name":"{key}","step":"1"}`, access.Admin},
	{"delete", "POST", "/leaf.v1.AdminService/DeleteTag", `{"name":"{key}"}`, access.Admin},
	{"free", "POST", "/leaf.v1.AdminService/FreeWorker", `{"worker":"1"}`, access.Admin},
	{"list", "POST", "/leaf.v1.AdminService/ListTags", `{}`, access.Read},
	{"workers", "POST", "/leaf.v1.AdminService/ListWorkers", `{}`, access.Read},
	{"status", "POST", "/leaf.v1.AdminService/Status", `{}`, access.Read},
	{"cache", "GET", "/cache", "", access.Read},
	{"db", "GET", "/db/", "", access.Read},
	{"metrics", "GET", "/metrics", "", access.Read},
	{"decode", "GET", "/decodeSnowflakeId?snowflakeId=1", "", access.Take | access.Read},
	{"parse", "GET", "/api/uid/parse/1", "", access.Take | access.Read},
	{"connect decode", "POST", "/leaf.v1.LeafService/Decode", `{"id":"1"}`, access.Take | access.Read},
	{"health", "GET", "/healthz", "", 0},
	{"ready", "GET", "/readyz", "", 0},
	{"description", "GET", "/openapi.yaml", "", 0},
	{"index", "GET", "/", "", 0},
}

func callNamed(t *testing.T, name string) call {
	t.Helper()
	i := slices.IndexFunc(calls, func(c call) bool { return c.name == name })
	if i < 0 {
		t.Fatalf("there is no call %q", name)
	}
	return calls[i]
}

// do makes a call for a tag and returns its status, and its answer without what names the
// time.
func (c call) do(t *testing.T, r *running, token, key string) (int, string) {
	t.Helper()
	path, body := strings.ReplaceAll(c.path, "{key}", key), strings.ReplaceAll(c.body, "{key}", key)
	req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+r.addr+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := r.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode == http.StatusUnauthorized && res.Header.Get("WWW-Authenticate") != "Bearer" {
		t.Errorf("%s: 401 without WWW-Authenticate", c.name)
	}
	text := strings.ReplaceAll(string(answer), key, "{key}")
	if strings.HasPrefix(text, `{"timestamp"`) {
		_, text, _ = strings.Cut(text, ",")
	}
	return res.StatusCode, text
}

// wantRefused checks that a call is refused, and alike for the tag order, which exists, and
// one that does not.
func (c call) wantRefused(t *testing.T, r *running, token string, want int) {
	t.Helper()
	status, answer := c.do(t, r, token, "order")
	otherStatus, otherAnswer := c.do(t, r, token, "missing")
	if status != want {
		t.Errorf("%s: %d %s, want %d", c.name, status, answer, want)
	}
	if otherStatus != status || otherAnswer != answer {
		t.Errorf("%s: %d %s for a tag that exists, %d %s for one that does not", c.name, status, answer, otherStatus, otherAnswer)
	}
}

// Without a token a client gets no ID and learns nothing, through every front end and at every
// address.
func TestNothingWithoutToken(t *testing.T) {
	file, _ := tokensFile(t, map[string]string{"any": `take: ["*"], rights: [read, admin]`})
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0"} {
		r := run(t, nil, func(o *server.Options) { o.Config.Listen, o.Config.TokensFile = listen, file })
		for _, c := range calls {
			if c.right != 0 {
				c.wantRefused(t, r, "", http.StatusUnauthorized)
			} else if status, answer := c.do(t, r, "", "order"); status == 401 || status == 403 {
				t.Errorf("%s: %d %s, want it open", c.name, status, answer)
			}
		}
		for _, name := range []string{"java", "java bad batch", "v1", "v1 decode", "connect", "delete", "list", "db"} { // of many more the answer would be 429
			callNamed(t, name).wantRefused(t, r, access.NewToken(), http.StatusUnauthorized)
		}
		if n := r.store.Calls(drivertest.OpAdvance); n != 0 {
			t.Errorf("the store was asked for IDs %d times", n)
		}
		r.wantStop(t)
	}
}

// A token grants its rights, and gets the same refusal for existing and unknown things.
func TestTokensDoWhatTheyMay(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{
		"shop": `take: ["order*"]`, "others": `take: ["user.*"]`, "viewer": `rights: [read]`, "operator": `rights: [admin]`, "server": `rights: [worker]`,
	})
	may := map[string]access.Right{
		"shop": access.Take, "others": access.Take, "viewer": access.Read, "operator": access.Admin | access.Read, "server": access.Worker,
	}
	r := run(t, nil, func(o *server.Options) { o.Config.TokensFile = file })
	for name, token := range tokens {
		for _, c := range calls {
			takes := c.right == access.Take
			switch {
			case c.right == 0:
			case takes && name == "others", c.right&may[name] == 0:
				c.wantRefused(t, r, token, http.StatusForbidden)
			case strings.Contains(c.name, "delete"): // what others ask for
			default:
				if status, answer := c.do(t, r, token, "order"); status == 401 || status == 403 {
					t.Errorf("%s with the token of %s: %d %s, want it done", c.name, name, status, answer)
				}
				if status, answer := c.do(t, r, token, "missing"); takes && status != 403 {
					t.Errorf("%s of another tag: %d %s", c.name, status, answer)
				}
			}
		}
	}
}

// Over gRPC a token is metadata.
func TestTokensOverGRPC(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"shop": `take: ["order"]`})
	r := run(t, nil, func(o *server.Options) { o.Config.TokensFile = file })
	transport := &http.Transport{Protocols: protocols(false, true)}
	defer transport.CloseIdleConnections()
	ids := leafv1connect.NewLeafServiceClient(&http.Client{Transport: transport}, "http://"+r.addr, connect.WithGRPC())
	for _, tt := range []struct {
		token, key string
		want       connect.Code // 0: it succeeds
	}{
		{"", "order", connect.CodeUnauthenticated},
		{access.NewToken(), "order", connect.CodeUnauthenticated},
		{tokens["shop"], "user", connect.CodePermissionDenied},
		{tokens["shop"], "order", 0},
	} {
		ctx, info := connect.NewClientContext(t.Context())
		info.RequestHeader().Set("Authorization", "bearer "+tt.token)
		res, err := ids.Next(ctx, &leafv1.NextRequest{Key: tt.key})
		if (err == nil) != (tt.want == 0) || err != nil && connect.CodeOf(err) != tt.want {
			t.Errorf("Next of %s: %v, %v, want %v", tt.key, res, err, tt.want)
		}
	}
}

// Whatever clients send, and wherever they send it, no token and no hash of one is logged.
func TestNoSecretsInTheLog(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"shop": `take: ["order"]`})
	log := new(testserver.Output)
	r := run(t, nil, func(o *server.Options) {
		o.Config.TokensFile = file
		o.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	wrong := access.NewToken()
	for _, token := range []string{tokens["shop"], wrong} {
		for _, c := range calls {
			c.do(t, r, token, "order")
		}
		for name, value := range map[string]string{"Authorization": "Basic " + token, "X-Token": token, "Cookie": "t=" + token} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/api/segment/get/"+token+"?token="+token, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set(name, value)
			res, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
		}
		conn := r.dial(t)
		fmt.Fprintf(conn, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization : Bearer %s\r\n\r\n", token) // malformed
		wantCut(t, conn)
	}
	r.wantStop(t)
	for _, token := range []string{tokens["shop"], wrong} {
		hash := strings.TrimPrefix(access.HashToken(token), "sha256:")
		if log := log.String(); strings.Contains(log, token[5:20]) || strings.Contains(log, hash[:12]) || !strings.Contains(log, `reason="unknown token"`) {
			t.Errorf("the log:\n%s", log)
		}
	}
}

// A tokens file is read again while the server runs, and a broken one changes nothing.
func TestReloadTokens(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"a": `take: ["*"]`})
	r := run(t, nil, func(o *server.Options) { o.Config.TokensFile = file })
	first := tokens["a"]
	take := calls[0]
	if status, answer := take.do(t, r, first, "order"); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if err := os.WriteFile(file, []byte("tokens: [{name: a}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.server.Reload(); err == nil || !strings.Contains(r.log.String(), "line 1") {
		t.Errorf("a broken file: %v, and the log says\n%s", err, r.log)
	}
	if status, answer := take.do(t, r, first, "order"); status != 200 {
		t.Errorf("after a broken file: %d %s", status, answer)
	}
	writeTokens(t, file, tokens, map[string]string{"b": `take: ["*"]`})
	if err := r.server.Reload(); err != nil {
		t.Fatal(err)
	}
	if status, _ := take.do(t, r, first, "order"); status != 401 {
		t.Errorf("a token that was withdrawn: %d", status)
	}
	if status, answer := take.do(t, r, tokens["b"], "order"); status != 200 {
		t.Errorf("the new one: %d %s", status, answer)
	}
}

// Limits count IDs, over all front ends.
func TestLimitOverFrontEnds(t *testing.T) {
	r := run(t, nil, func(o *server.Options) { o.Config.Limits.Client.Quota = 5 })
	for i, want := range []struct {
		call   string
		status int
	}{
		{"java batch", 200}, {"v1", 200}, {"java batch", 429}, {"connect batch", 429}, {"v1 ranges", 429}, {"java", 200},
		{"connect", 429}, {"v1", 429}, {"java", 429}, {"java bad batch", 400}, {"decode", 200},
	} {
		c := callNamed(t, want.call)
		if status, answer := c.do(t, r, "", "order"); status != want.status {
			t.Errorf("call %d, %s: %d %s, want %d", i, c.name, status, answer, want.status)
		}
	}
}

// What only asks takes no ID, counts under no limit, and is answered where the limit is reached.
func TestAskingTakesNothing(t *testing.T) {
	r := run(t, nil, func(o *server.Options) { withRESP(o); o.Config.Limits.Client.Quota = 1 })
	conn, in := r.dialRESP(t)
	ask := func() {
		for range 3 {
			for _, name := range []string{"java head", "v1 head"} {
				if status, answer := callNamed(t, name).do(t, r, "", "order"); status != 200 {
					t.Errorf("%s: %d %s", name, status, answer)
				}
			}
			for command, want := range map[string]string{"SETNX order 0": ":0", "SET order 0 NX": "$-1", "GET order": "-ERR a counter is not read"} {
				fmt.Fprint(conn, command+"\r\n")
				if line, err := in.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
					t.Errorf("%s: %q, %v", command, line, err)
				}
			}
		}
	}
	ask()
	r.want(t, "/api/segment/get/order", 200, "1")
	r.want(t, "/v1/ids/segment/order", 429, "limit")
	ask()
}

// Reading needs a token where other machines reach the server, unless it is public.
func TestPublicRead(t *testing.T) {
	for public, want := range map[bool]int{false: 403, true: 200} {
		r := run(t, nil, func(o *server.Options) { o.Config.Listen, o.Config.PublicRead = "0.0.0.0:0", public })
		for _, c := range calls {
			if status, answer := c.do(t, r, "", "order"); c.right == access.Read && c.name != "workers" && status != want {
				t.Errorf("public %v, %s: %d %s, want %d", public, c.name, status, answer, want)
			}
		}
		status, answer, err := r.get("/readyz?verbose")
		if err != nil || status != 200 || strings.Contains(answer, "scheme segment") != public {
			t.Errorf("public %v: the reasons of readyz: %d %s %v", public, status, answer, err)
		}
		r.wantStop(t)
	}
}

func TestBadTokensFile(t *testing.T) {
	opts := server.Options{Config: segmentOnly(t), Store: storeBackend(nil)}
	opts.Config.TokensFile = filepath.Join(t.TempDir(), "none")
	if s, err := server.New(t.Context(), opts); err == nil || !strings.Contains(err.Error(), opts.Config.TokensFile) {
		t.Errorf("New: %v, %v; a server without its tokens would be open", s, err)
	}
}
