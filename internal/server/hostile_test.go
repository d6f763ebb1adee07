package server_test

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/server"
)

// dial connects to the server; the connection fails the test rather than hang it.
func (r *running) dial(t *testing.T) net.Conn {
	t.Helper()
	conn := dialTo(t, r.addr)
	if r.tls != nil {
		conn = tls.Client(conn, r.tls)
	}
	return conn
}

func dialTo(t *testing.T, addr string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

// wantCut waits for the server to close a connection.
func wantCut(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := io.Copy(io.Discard, conn)
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Fatal("the connection is kept")
	}
}

// The server cuts off a thousand clients that never end their request, and they hold up nobody
// meanwhile.
func TestSlowLoris(t *testing.T) { ways(t, testSlowLoris) }

func testSlowLoris(t *testing.T, way func(*server.Options)) {
	const clients, perClient = 1000, 100 << 10 // bytes, those of this test too
	r := run(t, nil, way)
	r.want(t, "/api/segment/get/order", 200, "1")
	before := inUse()
	conns := make([]net.Conn, clients)
	for i := range conns {
		conns[i] = r.dial(t)
		fmt.Fprint(conns[i], "GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	}
	for want := range 100 {
		fmt.Fprint(conns[want], "still here")
		r.want(t, "/api/segment/get/order", 200, fmt.Sprint(want+2))
	}
	if used := inUse() - before; used > clients*perClient {
		t.Errorf("%d clients take %d bytes of memory", clients, used)
	}
	for _, conn := range conns {
		wantCut(t, conn)
	}
}

func inUse() int {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}

// The server cuts off a client that does not read its answer.
func TestClientThatDoesNotRead(t *testing.T) { ways(t, testClientThatDoesNotRead) }

func testClientThatDoesNotRead(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, func(o *server.Options) { way(o); o.SetAnswerTimeout(200 * time.Millisecond) })
	conn := r.dial(t)
	request := []byte("GET /api/segment/get/order?n=10000 HTTP/1.1\r\nHost: x\r\n\r\n")
	var err error
	for err == nil { // until no buffer takes more, and the server gives up
		_, err = conn.Write(request)
	}
	if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
		t.Error("the connection is kept")
	}
	r.want(t, "/healthz", 200, "ok")
}

// Connections beyond the limit are closed, and one that ends makes room.
func TestConnectionLimit(t *testing.T) { ways(t, testConnectionLimit) }

func testConnectionLimit(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, func(o *server.Options) { way(o); o.Config.Limits.Connections = 3 })
	held := []net.Conn{r.dial(t), r.dial(t), r.dial(t)}
	for _, conn := range held { // an answer shows that it was accepted
		fmt.Fprint(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if res, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || res.StatusCode != 200 {
			t.Fatalf("%v, %v", res, err)
		}
	}
	wantCut(t, r.dial(t))
	until(t, "the log says why", func() bool { return strings.Contains(r.log.String(), "limits.connections") })
	_ = held[0].Close()
	until(t, "there is room again", func() bool { return r.status("/healthz") == 200 })
}

// One client has no more connections than it may; one that ends makes room.
func TestConnectionsPerClient(t *testing.T) { ways(t, testConnectionsPerClient) }

func testConnectionsPerClient(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, func(o *server.Options) { way(o); o.Config.Limits.ConnectionsPerClient = 2 })
	var held []net.Conn
	for _, path := range []string{"/api/uuid/get/x", "/healthz"} { // in the lane, and behind it
		conn := r.dial(t)
		fmt.Fprint(conn, getRequest(path))
		if status, _ := readAnswer(t, bufio.NewReader(conn)); status != 200 {
			t.Fatalf("%s: %d", path, status)
		}
		held = append(held, conn)
	}
	third := r.dial(t)
	fmt.Fprint(third, getRequest("/healthz")) // the handshake fails, or the request
	wantCut(t, third)
	until(t, "the log says why", func() bool { return strings.Contains(r.log.String(), "limits.connections_per_client") })
	for _, conn := range held {
		_ = conn.Close()
		until(t, "there is room again", func() bool { return answers(r.dial(t)) })
	}
}

// answers reports whether a connection is served, and closes it.
func answers(conn net.Conn) bool {
	defer conn.Close()
	fmt.Fprint(conn, getRequest("/healthz"))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	return err == nil && res.StatusCode == 200
}

// A request that a proxy in front might read differently gets at most one answer, and the bytes
// behind it get no answer.
func TestSmuggling(t *testing.T) { ways(t, testSmuggling) }

func testSmuggling(t *testing.T, way func(*server.Options)) {
	const next = "GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n"
	r := run(t, nil, way)
	for name, request := range map[string]string{
		"length and chunks":       "POST /cache HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":             "POST /cache HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
		"a list of lengths":       "POST /cache HTTP/1.1\r\nHost: x\r\nContent-Length: 5, 5\r\n\r\n12345",
		"a length with a sign":    "POST /cache HTTP/1.1\r\nHost: x\r\nContent-Length: +5\r\n\r\n12345",
		"chunks twice":            "POST /cache HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"another encoding":        "POST /cache HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"an encoding like chunks": "POST /cache HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: xchunked\r\n\r\n12345",
		"a space in a name":       "POST /cache HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
		"an odd chunk":            "POST /cache HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
		"a negative chunk":        "POST /cache HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\na\r\n0\r\n\r\n",
		"chunks with bare LF":     "POST /cache HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\na\n0\n\n",
		"a bare CR":               "GET /cache HTTP/1.1\r\nHost: x\r\nA: b\rTransfer-Encoding: chunked\r\n\r\n",
		"two hosts":               "GET /cache HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
		"a head without end":      "GET /cache HTTP/1.1\r\nHost: x\r\nA: " + strings.Repeat("a", 64<<10),
	} {
		conn := r.dial(t)
		fmt.Fprint(conn, request+next)
		var answer bytes.Buffer
		if _, err := io.Copy(&answer, conn); err != nil && answer.Len() == 0 {
			t.Errorf("%s: %v", name, err)
		}
		if n := strings.Count(answer.String(), "HTTP/1.1 "); n != 1 {
			t.Errorf("%s: %d answers:\n%s", name, n, &answer)
		}
	}
	if n := r.store.Calls(drivertest.OpAdvance); n != 0 {
		t.Errorf("the store was asked for IDs %d times", n)
	}
}

// Streams that open and reset as fast as possible do not pile up (CVE-2023-44487).
func TestRapidReset(t *testing.T) {
	const streams, most = 5000, 1000 // goroutines
	r, _ := runHeld(t, nil)
	conn := r.dial(t)
	go func() { _, _ = io.Copy(io.Discard, conn) }() // the server's part of the conversation
	fmt.Fprint(conn, http2.ClientPreface)
	framer := http2.NewFramer(conn, nil)
	err := framer.WriteSettings()
	var head bytes.Buffer
	encoder := hpack.NewEncoder(&head)
	for i := 0; i < streams && err == nil; i++ {
		head.Reset()
		for name, value := range map[string]string{":method": "GET", ":scheme": "http", ":authority": "x", ":path": "/api/segment/get/order"} {
			_ = encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) // a buffer takes all
		}
		id := uint32(2*i + 1)
		if err = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: head.Bytes(), EndHeaders: true, EndStream: true}); err == nil {
			err = framer.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		if i%1000 == 0 {
			r.want(t, "/healthz", 200, "ok")
			if n := runtime.NumGoroutine(); n > most {
				t.Fatalf("%d goroutines after %d streams", n, i)
			}
		}
	}
	r.want(t, "/healthz", 200, "ok") // whether or not the server has ended the other connection: err
}
