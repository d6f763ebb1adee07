package postgres_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
)

// A way leads to a server and may forget the connections that it has, as a firewall
// does and an address that moves: they fall silent, and new ones work.
type way struct {
	addr, server string
	era          atomic.Int64
}

func newWay(t *testing.T, server string) *way {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &way{addr: listener.Addr().String(), server: server}
	ctx, stop := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { stop(); listener.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { w.lead(ctx, client) })
		}
	})
	return w
}

func (w *way) lead(ctx context.Context, client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	defer context.AfterFunc(ctx, func() { client.Close(); server.Close() })()
	era := w.era.Load()
	var wg sync.WaitGroup
	for _, pair := range [][2]net.Conn{{client, server}, {server, client}} {
		wg.Go(func() {
			_, _ = io.Copy(writer(func(p []byte) (int, error) {
				if w.era.Load() != era {
					return len(p), nil
				}
				return pair[0].Write(p)
			}), pair[1])
			if w.era.Load() == era {
				pair[0].Close()
			}
		})
	}
	wg.Wait()
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// The first call without an answer names the server and a remedy. It is the only such call, however
// many connections exist.
func TestPostgresConnectionsFallSilent(t *testing.T) {
	direct, err := url.Parse(postgresServer.URL(initPostgres(t, order)))
	if err != nil {
		t.Fatal(err)
	}
	w := newWay(t, direct.Host)
	direct.Host = w.addr
	db := postgresDB(t, direct.String())
	s := openPostgres(t, db)
	var held []io.Closer
	for range 16 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, conn)
	}
	for _, conn := range held {
		conn.Close()
	}
	w.era.Add(1)
	advance := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // as long as a server allows
		defer cancel()
		_, err := s.Advance(ctx, "order", 1)
		return err
	}
	err = advance()
	sqltest.WantError(t, "no answer from "+w.addr+" within 4s: the server hangs, or another transaction holds the row", err)
	if errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v: says that the caller's time was up", err)
	}
	if err := advance(); err != nil {
		t.Errorf("by a new connection: %v", err)
	}
	if n := db.Stats().OpenConnections; n >= 16 {
		t.Errorf("%d connections, want those in use and some that wait to be given up", n)
	}
}

// A server that accepts connections and says nothing holds no row.
func TestPostgresSilentServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	addr := listener.Addr().String()
	for params, want := range map[string]string{
		"":                   "no answer from " + addr + " within 4s: the server hangs or cannot be reached",
		"&connect_timeout=1": "the server hangs or cannot be reached",
	} {
		_, err = openPostgres(t, postgresDB(t, "postgres://u:hush@"+addr+"/x?sslmode=disable"+params)).Advance(t.Context(), "order", 1)
		sqltest.WantError(t, want, err)
		if text := err.Error(); strings.Contains(text, "row") || strings.Contains(text, "\n") || strings.Contains(text, "hush") || !strings.Contains(text, addr+" (") {
			t.Errorf("%q: speaks of a row, has lines, holds the password or does not name what was tried", text)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v: says that the caller's time was up", err)
		}
	}
}
