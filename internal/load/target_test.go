package load_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// startServer starts a server with the tags order and "a b/c", snowflake and UUIDs.
func startServer(t *testing.T, edit func(*config.Config)) *server.Server {
	t.Helper()
	store := memory.New().Store()
	for _, tag := range []string{"order", "a b/c"} {
		if err := store.Create(t.Context(), segment.Tag{Name: tag, MaxID: 1, Step: 1000}); err != nil {
			t.Fatal(err)
		}
	}
	cfg := config.Default()
	cfg.RESP = "127.0.0.1:0"
	cfg.Listen, cfg.Data, cfg.Store, cfg.Workers = "127.0.0.1:0", t.TempDir(), "memory:", "memory:workers"
	cfg.UID.Enable = config.EnableTrue
	if edit != nil {
		edit(&cfg)
	}
	s, err := server.New(t.Context(), server.Options{
		Config:  cfg,
		Store:   &backend.Backend{Name: "memory:", Key: "memory:", DB: io.NopCloser(nil), TagStore: store},
		Workers: &backend.Backend{Name: "memory:workers", Key: "memory:workers", DB: io.NopCloser(nil), WorkerRegistry: memory.New().Registry()},
	})
	if err != nil {
		t.Fatal(err)
	}
	testserver.Background(t, s.Run)
	return s
}

const timeout = 30 * time.Second

// targets are the protocols.
var targets = map[string]func(s load.Server, scheme string) load.Target{
	"http": func(s load.Server, scheme string) load.Target { return load.Routes(s, scheme) },
	"v1":   func(s load.Server, scheme string) load.Target { return load.V1(s, scheme) },
	"grpc": func(s load.Server, scheme string) load.Target { return load.NewGRPC(s, scheme, 2) },
	"resp": func(s load.Server, scheme string) load.Target { return &load.RESP{Server: s, Scheme: scheme} },
}

// address is where a server speaks a protocol.
func address(s *server.Server, protocol string) string {
	if protocol == "resp" {
		return s.Addr("resp").String()
	}
	return s.Addr("listen").String()
}

// eachTarget runs a test for every protocol.
func eachTarget(t *testing.T, test func(t *testing.T, open func(scheme string) load.Target)) {
	srv := startServer(t, nil)
	for name, target := range targets {
		t.Run(name, func(t *testing.T) {
			test(t, func(scheme string) load.Target {
				made := target(load.Server{Addr: address(srv, name), Timeout: timeout}, scheme)
				if closer, ok := made.(interface{ Close() error }); ok {
					t.Cleanup(func() { _ = closer.Close() })
				}
				return made
			})
		})
	}
}

// ask makes a call until it is served: a worker ID comes a moment after the start.
func ask(t *testing.T, conn load.Conn, key string, count int) *load.Call {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		call := &load.Call{Key: key, Count: count}
		conn.Do(t.Context(), []*load.Call{call})
		if call.Err == nil {
			return call
		}
		if time.Since(start) > timeout {
			t.Fatal(call.Err)
		}
	}
}

func TestTargets(t *testing.T) {
	eachTarget(t, func(t *testing.T, open func(string) load.Target) {
		for scheme, keys := range map[string][]string{
			"segment": {"order", "a b/c"}, "snowflake": {"x"}, "uid": {"x"}, "uuid": {"v4", "v7"},
		} {
			conn := open(scheme).Open()
			defer conn.Close()
			seen := map[string]bool{}
			for _, key := range keys {
				for _, count := range []int{1, 2, 1000, 1} {
					call := ask(t, conn, key, count)
					if got := call.IDs.Len(); got != int64(count) {
						t.Errorf("%s %q: %d IDs, want %d", scheme, key, got, count)
					}
					addAll(t, seen, key, &call.IDs)
				}
			}
		}
	})
}

// addAll notes IDs that must not have come before.
func addAll(t *testing.T, seen map[string]bool, key string, ids *load.IDs) {
	t.Helper()
	add := func(id any) {
		text := fmt.Sprint(key, " ", id)
		if seen[text] {
			t.Errorf("%s came twice", text)
		}
		seen[text] = true
	}
	for _, r := range ids.Ranges {
		for id := r.Start; id < r.End; id++ {
			add(id)
		}
	}
	for _, id := range ids.UUIDs {
		add(id)
	}
}

// A server with TLS wants a token, which each protocol shows it.
func TestCredentials(t *testing.T) {
	cert, key := testserver.Certificate(t)
	token, tokens := access.NewToken(), filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(tokens, fmt.Appendf(nil, "tokens:\n- {name: bench, hash: %q, take: [order]}\n", access.HashToken(token)), 0o600); err != nil {
		t.Fatal(err)
	}
	srv := startServer(t, func(c *config.Config) {
		c.TokensFile, c.TLS.Cert, c.TLS.Key = tokens, cert, key
	})
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	security := &tls.Config{RootCAs: x509.NewCertPool()}
	security.RootCAs.AppendCertsFromPEM(text)
	for name, target := range targets {
		for _, shown := range []string{token, ""} {
			target := target(load.Server{Addr: address(srv, name), TLS: security, Token: shown, Timeout: timeout}, "segment")
			conn := target.Open()
			if shown != "" {
				ask(t, conn, "order", 3)
			} else {
				call := &load.Call{Key: "order", Count: 1}
				conn.Do(t.Context(), []*load.Call{call})
				if _, said := errors.AsType[*load.Failure](call.Err); !said {
					t.Errorf("%s without a token: %v", name, call.Err)
				}
			}
			conn.Close()
			if closer, ok := target.(*load.GRPC); ok {
				closer.Close()
			}
		}
	}
}

// A refusal comes in the server's words, and the connection stays usable.
func TestRefused(t *testing.T) {
	eachTarget(t, func(t *testing.T, open func(string) load.Target) {
		conn := open("segment").Open()
		defer conn.Close()
		for _, tt := range []struct {
			key   string
			count int
			want  string
		}{
			{"no-such-tag", 1, "no-such-tag"},
			{"no-such-tag", 10, "no-such-tag"},
			{"order", 10_000_000, "10000"},
		} {
			call := &load.Call{Key: tt.key, Count: tt.count}
			conn.Do(t.Context(), []*load.Call{call})
			said, ok := errors.AsType[*load.Failure](call.Err)
			if !ok || said.Kind == "" || !containsAny(said.Text, tt.want) {
				t.Errorf("%q: %v", tt.key, call.Err)
			}
			ask(t, conn, "order", 1)
		}
	})
}

// Load over each protocol: no ID comes twice.
func TestLoad(t *testing.T) {
	eachTarget(t, func(t *testing.T, open func(string) load.Target) {
		for _, rate := range []float64{0, 500} {
			ask(t, open("segment").Open(), "order", 1)
			res, err := load.Run(t.Context(), load.Options{
				Target: open("segment"), Keys: []load.Key{{Name: "order", Space: "order"}, {Name: "a b/c", Space: "a b/c"}},
				Count: 7, Clients: 4, Pipeline: 1, Rate: rate, Duration: 300 * time.Millisecond, Memory: 1 << 30,
			})
			if err != nil {
				t.Fatal(err)
			}
			if c := res.Check; c.Duplicates != 0 || c.Checked != res.IDs+2*7 || c.Kept != c.Checked || res.Failed != 0 {
				t.Errorf("%+v", res)
			}
			if rate > 0 && res.Sent+res.Unsent != 150 {
				t.Errorf("%d sent, %d unsent, want 150", res.Sent, res.Unsent)
			}
		}
	})
}

// A port that nothing listens on, and one that accepts and does not answer.
func TestNoAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for name, target := range targets {
		for addr, want := range map[string]string{l.Addr().String(): "deadline|timeout|closed network connection", gone.Addr().String(): "refused"} {
			conn := target(load.Server{Addr: addr, Timeout: 100 * time.Millisecond}, "segment").Open()
			call := &load.Call{Key: "order", Count: 1}
			conn.Do(t.Context(), []*load.Call{call})
			if call.Err == nil || !containsAny(call.Err.Error(), want) {
				t.Errorf("%s: %v, want %s", name, call.Err, want)
			}
			conn.Close()
		}
	}
}

func containsAny(text, words string) bool {
	for word := range strings.SplitSeq(words, "|") {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}
