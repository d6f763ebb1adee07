package server_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/filewatch"
	"github.com/leaf-id/leaf/internal/server"
)

// reloadable has the server load what current holds.
func reloadable(current *atomic.Pointer[config.Config], level *slog.LevelVar) func(*server.Options) {
	return func(o *server.Options) {
		o.Level = level
		cfg := o.Config
		current.Store(&cfg)
		o.Load = func() (config.Config, error) {
			if c := current.Load(); c != nil {
				return *c, nil
			}
			return config.Config{}, errors.New("line 3: no such key")
		}
	}
}

// A reload takes up limits, origins and the log level, says what needs a restart, and changes
// nothing where the configuration is broken.
func TestReload(t *testing.T) {
	var current atomic.Pointer[config.Config]
	level := new(slog.LevelVar)
	r := run(t, nil, reloadable(&current, level))
	r.want(t, "/api/segment/get/order", 200, "1")
	allowed := func(origin string) bool {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/v1/ids/segment/order", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Origin", origin)
		res, err := r.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.Header.Get("Access-Control-Allow-Origin") == origin
	}
	change := func(edit func(*config.Config)) error {
		next := *current.Load()
		edit(&next)
		current.Store(&next)
		return r.server.Reload()
	}
	if allowed("https://shop.example") {
		t.Error("an origin is allowed that is not configured")
	}
	err := change(func(c *config.Config) {
		c.CORSOrigins, c.Log.Level = []string{"https://shop.example"}, "debug"
		c.Limits.Tags = config.TagLimits{"limited": {Quota: 1}}
		c.Listen, c.Segment.Wait = "127.0.0.1:1", time.Hour
	})
	if err != nil {
		t.Fatal(err)
	}
	if !allowed("https://shop.example") {
		t.Error("the new origin is not allowed")
	}
	if level.Level() != slog.LevelDebug {
		t.Errorf("the level is %v", level.Level())
	}
	r.want(t, "/v1/ids/segment/limited?n=2", 429, "1 IDs a day")
	for _, line := range []string{`changed="cors_origins, limits.tags, log.level"`, `need a restart; they stay as they were" keys="listen, segment.wait"`} {
		if !strings.Contains(r.log.String(), line) {
			t.Errorf("the log lacks %s:\n%s", line, r.log)
		}
	}
	good := current.Swap(nil)
	if err := r.server.Reload(); err == nil || !strings.Contains(r.log.String(), "line 3: no such key") {
		t.Errorf("a broken file: %v, and the log says\n%s", err, r.log)
	}
	current.Store(good)
	if err := change(func(c *config.Config) { c.CORSOrigins, c.TokensFile = nil, "/nowhere" }); err == nil {
		t.Error("no error about a tokens file that is not there")
	}
	if !allowed("https://shop.example") {
		t.Error("a reload that failed took up something")
	}
}

// No reload turns authentication off: an emptied or half written file would do so.
func TestReloadStaysClosed(t *testing.T) {
	clients := sign(t, "clients", nil)
	ca := filepath.Join(t.TempDir(), "clients")
	clients.write(t, ca)
	tokens, _ := tokensFile(t, map[string]string{"ops": `rights: [admin]`})
	var current atomic.Pointer[config.Config]
	e := runTLS(t, func(o *server.Options) {
		o.Config.TLS.ClientCA, o.Config.TokensFile = ca+".pem", tokens
		reloadable(&current, new(slog.LevelVar))(o)
	})
	client := e.trusting(t, false, &tls.Config{Certificates: sign(t, "shop.example", clients).pair()})
	for what, empty := range map[string]func(*config.Config){
		"tokens_file was set":             func(c *config.Config) { c.TokensFile = "" },
		"tls.client_ca was set":           func(c *config.Config) { c.TLS.ClientCA = "" },
		"the configuration file had keys": func(c *config.Config) { c.EmptyFile = true },
	} {
		good := *current.Load()
		next := good
		empty(&next)
		next.CORSOrigins = []string{"https://shop.example"}
		current.Store(&next)
		if err := e.server.Reload(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		if answer, _, err := e.ask(client, "/api/segment/get/order"); err != nil || !strings.Contains(answer, "401") {
			t.Errorf("%s: without a token: %q, %v", what, answer, err)
		}
		if _, _, err := e.ask(e.trusting(t, false, new(tls.Config)), "/healthz"); err == nil {
			t.Errorf("%s: a client without a certificate is let in", what)
		}
		current.Store(&good)
	}
}

// Files that change are read again without any signal, also where a link is swapped as
// Kubernetes does it.
func TestFilesAreWatched(t *testing.T) {
	dir := t.TempDir()
	tokens := map[string]string{}
	for i, name := range []string{"a", "b"} {
		version := filepath.Join(dir, fmt.Sprint("..v", i))
		if err := os.Mkdir(version, 0o700); err != nil {
			t.Fatal(err)
		}
		writeTokens(t, filepath.Join(version, "tokens.yaml"), tokens, map[string]string{name: `take: ["*"]`})
	}
	for link, target := range map[string]string{"..data": "..v0", "..next": "..v1", "tokens.yaml": filepath.Join("..data", "tokens.yaml")} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	r := run(t, nil, func(o *server.Options) {
		o.Config.TokensFile = filepath.Join(dir, "tokens.yaml")
		o.SetFilesInterval(5 * time.Millisecond)
	})
	take := calls[0]
	if status, answer := take.do(t, r, tokens["a"], "order"); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if err := os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	until(t, "the new token is known", func() bool { status, _ := take.do(t, r, tokens["b"], "order"); return status == 200 })
	if status, _ := take.do(t, r, tokens["a"], "order"); status != 401 {
		t.Errorf("the old token: %d", status)
	}
	if err := os.WriteFile(filepath.Join(dir, "..v1", "tokens.yaml"), []byte("tokens: [{name: x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the broken file is reported", func() bool { return strings.Contains(r.log.String(), "the old one stays in force") })
	if status, _ := take.do(t, r, tokens["b"], "order"); status != 200 {
		t.Errorf("after a broken file: %d", status)
	}
}

// A file that cannot be read for ever, as on a network drive without its server, holds up no stop.
func TestHungFileHoldsUpNoStop(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"a": `take: ["*"]`})
	r := run(t, nil, func(o *server.Options) {
		o.Config.TokensFile = file
		o.SetFilesInterval(5 * time.Millisecond)
	})
	if status, answer := calls[0].do(t, r, tokens["a"], "order"); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	writer := hang(t, file)
	until(t, "the change is noticed", func() bool { return strings.Contains(r.log.String(), "files have changed") })
	if took := r.wantStop(t); took > 5*time.Second {
		t.Errorf("the stop took %v", took)
	}
	if got := r.store.Returned("order"); len(got) != 1 || got[0].Start != 2 {
		t.Errorf("given back: %v, want from 2", got)
	}
	writer()
}

// hang makes reads of a file wait until end is called.
func hang(t *testing.T, file string) (end func()) {
	t.Helper()
	pipe := file + ".pipe"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(pipe, file); err != nil {
		t.Fatal(err)
	}
	end = sync.OnceFunc(func() {
		if f, err := os.OpenFile(file, os.O_RDWR, 0); err != nil { // the read goes on, and ends
			t.Error(err)
		} else {
			_ = f.Close()
		}
	})
	t.Cleanup(end)
	return end
}

// A failed reload is repeated, since its cause may go without a change of a file that is watched.
func TestFailedReloadIsRepeated(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"a": `take: ["*"]`})
	var loads atomic.Int64
	r := run(t, nil, func(o *server.Options) {
		o.Config.TokensFile = file
		cfg := o.Config
		o.Load = func() (config.Config, error) { loads.Add(1); return cfg, nil }
		o.SetFilesInterval(20 * time.Millisecond)
	})
	take := calls[0]
	leaked := tokens["a"]
	if status, answer := take.do(t, r, leaked, "order"); status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	if err := os.Chmod(file, 0o664); err != nil {
		t.Fatal(err)
	}
	writeTokens(t, file, tokens, map[string]string{"another": `take: ["*"]`})
	until(t, "the mode is reported", func() bool { return strings.Contains(r.log.String(), "chmod go-w") })
	until(t, "it is repeated", func() bool { return loads.Load() > 5 })
	if n := strings.Count(r.log.String(), "chmod go-w"); n != 1 {
		t.Errorf("the error is logged %d times", n)
	}
	if err := os.Chmod(file, 0o600); err != nil {
		t.Fatal(err)
	}
	until(t, "the token is withdrawn", func() bool { status, _ := take.do(t, r, leaked, "order"); return status == 401 })
	r.stop()
	r.wantStop(t)
	if n := strings.Count(r.log.String(), "the configuration was read again"); n != 1 {
		t.Errorf("%d reloads succeeded, want 1", n)
	}
}

// A change during the start counts, from when a file was read.
func TestFilesChangeDuringTheStart(t *testing.T) {
	t.Run("configuration", func(t *testing.T) {
		conf := filepath.Join(t.TempDir(), "leaf.yaml")
		r := run(t, nil, func(o *server.Options) {
			o.ConfigFile, o.Files = conf, filewatch.New(conf)
			o.SetFilesInterval(2 * time.Millisecond)
			if err := os.WriteFile(conf, []byte("log: {}"), 0o600); err != nil { // since it was read
				t.Fatal(err)
			}
		})
		until(t, "the change is noticed", func() bool { return strings.Contains(r.log.String(), "the configuration was read again") })
	})
	t.Run("tokens", func(t *testing.T) {
		file, tokens := tokensFile(t, map[string]string{"a": `take: ["*"]`})
		leaked := tokens["a"]
		away := func(drivertest.Call) drivertest.Fault { return drivertest.Fault{Before: errAway} }
		r := run(t, away, func(o *server.Options) {
			o.Config.TokensFile, o.Config.StartWait = file, time.Hour
			o.SetFilesInterval(2 * time.Millisecond)
		})
		writeTokens(t, file, tokens, map[string]string{"another": `take: ["*"]`})
		r.store.Plan(nil)
		until(t, "the token is withdrawn", func() bool {
			if r.status("/healthz") != 200 { // it does not listen yet
				return false
			}
			status, _ := calls[0].do(t, r, leaked, "order")
			return status == 401
		})
	})
}

// The access log holds one of so many requests, and a reload turns it on and off.
func TestAccessLog(t *testing.T) {
	var current atomic.Pointer[config.Config]
	r := run(t, nil, reloadable(&current, new(slog.LevelVar)))
	lines := func() int { return strings.Count(r.log.String(), "msg=access") }
	ask := func(every int64, requests, want int) {
		t.Helper()
		next := *current.Load()
		next.Log.Access = every
		current.Store(&next)
		if err := r.server.Reload(); err != nil {
			t.Fatal(err)
		}
		before := lines()
		for range requests {
			r.want(t, "/v1/ids/segment/order", 200, "ids")
		}
		until(t, fmt.Sprintf("%d lines", want), func() bool { return lines()-before >= want })
		if got := lines() - before; got != want {
			t.Errorf("%d lines for %d requests, one of %d; want %d", got, requests, every, want)
		}
	}
	ask(0, 3, 0)
	ask(3, 9, 3)
	ask(1, 2, 2)
	if !strings.Contains(r.log.String(), "msg=access method=GET path=/v1/ids/segment/order proto=HTTP/1.1 status=200 bytes=") {
		t.Errorf("the log:\n%s", r.log)
	}
}

// Profiles are for administrators. The command line, which may have a password, is not a profile.
func TestProfiles(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"ops": `rights: [admin]`, "shop": `take: ["*"]`})
	r := run(t, nil, func(o *server.Options) { o.Config.TokensFile = file })
	for path, want := range map[string][2]int{
		"/debug/pprof/": {200, 403}, "/debug/pprof/goroutine?debug=1": {200, 403}, "/debug/pprof/profile?seconds=1": {200, 403},
		"/debug/pprof/cmdline": {404, 403},
	} {
		for i, name := range []string{"ops", "shop"} {
			if status, answer := (call{method: "GET", path: path}).do(t, r, tokens[name], ""); status != want[i] {
				t.Errorf("%s as %s: %d %s, want %d", path, name, status, answer, want[i])
			}
		}
		if status, _, err := r.get(path); status != 401 || err != nil {
			t.Errorf("%s without a token: %d, %v", path, status, err)
		}
	}
}
