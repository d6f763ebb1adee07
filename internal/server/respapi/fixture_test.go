package respapi_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/respapi"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/segment"
)

// timeout bounds the wait of a test.
const timeout = 3 * time.Minute

// A fixture is a server of the Redis protocol over a store with the tag "order": step 100,
// from 1.
type fixture struct {
	addr  string
	store *drivertest.Faulty
	conns *conns.Server
}

// An options changes the parts of a fixture.
type options struct {
	segment  segment.SetOptions
	conns    conns.Options
	access   *access.Gate
	batch    int
	step     int64
	requests *telemetry.FrontEnds
	wrap     func(conns.Handler) conns.Handler
}

func serve(t testing.TB, edit func(*options)) *fixture {
	t.Helper()
	o := options{
		batch: 10_000, step: 100, access: access.New(access.Options{Local: true}),
		wrap: func(h conns.Handler) conns.Handler { return h },
	}
	if edit != nil {
		edit(&o)
	}
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: o.step}); err != nil {
		t.Fatal(err)
	}
	f := &fixture{store: &drivertest.Faulty{Store: store}}
	set := segment.NewSet(f.store, &o.segment)
	sources := map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}
	opts := &frontend.Options{
		IDs: issuer.New(sources, &issuer.Options{MaxBatch: o.batch}), Access: o.access, Batches: frontend.NewBatchLimiter(),
		Version: "v1.2.3", Started: time.Now(), Requests: o.requests,
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.addr = listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	o.conns.Refusal = respapi.Full
	f.conns = conns.New(ctx, o.wrap(respapi.New(opts).Serve), &o.conns)
	served := make(chan error, 1)
	go func() { served <- f.conns.Serve(listener) }()
	t.Cleanup(func() {
		f.store.Plan(nil)
		cancel()
		f.conns.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := f.conns.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if err := set.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return f
}

// A client is a connection to a fixture.
type client struct {
	t testing.TB
	net.Conn
	*bufio.Reader
}

func (f *fixture) dial(t testing.TB) *client {
	t.Helper()
	conn, err := net.Dial("tcp", f.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn, bufio.NewReader(conn)}
}

func (c *client) Read(p []byte) (int, error) { return c.Reader.Read(p) }

// command returns a command as clients send it.
func command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.Conn, text); err != nil {
		c.t.Fatal(err)
	}
}

// reply reads one reply and returns it in one line: an array as [a b], a map as {a b}.
func (c *client) reply() string {
	c.t.Helper()
	text, err := readReply(c.Reader)
	if err != nil {
		c.t.Fatalf("read a reply: %v", err)
	}
	return text
}

// do sends a command and returns the reply.
func (c *client) do(args ...string) string {
	c.t.Helper()
	c.send(command(args...))
	return c.reply()
}

// wantEnd checks that the server has closed the connection, and its last words.
func (c *client) wantEnd(last string) {
	c.t.Helper()
	if got, err := io.ReadAll(c.Reader); err != nil || string(got) != last {
		c.t.Errorf("the connection ended with %q, %v; want %q", got, err, last)
	}
}

func readReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	kind, rest := line[0], line[1:]
	n, _ := strconv.Atoi(rest)
	switch {
	case kind == '$' && n < 0:
		return "nil", nil
	case kind == '*' && n < 0:
		return "nil array", nil
	case kind == '$' || kind == '=':
		text := make([]byte, n+2)
		_, err := io.ReadFull(r, text)
		return string(text[:n]), err
	case kind == '*':
		return readMany(r, n, "[", "]")
	case kind == '%':
		return readMany(r, 2*n, "{", "}")
	case kind == '~':
		return readMany(r, n, "(", ")")
	}
	return line, nil
}

func readMany(r *bufio.Reader, n int, open, end string) (string, error) {
	parts := make([]string, n)
	for i := range parts {
		var err error
		if parts[i], err = readReply(r); err != nil {
			return "", err
		}
	}
	return open + strings.Join(parts, " ") + end, nil
}
