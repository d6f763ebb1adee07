package server_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server"
)

// readAnswer reads one answer.
func readAnswer(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	res, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func getRequest(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n" }

// Requests that the lane answers, and others, follow one another on a connection, in pieces of
// any size.
func TestLaneHandsOver(t *testing.T) { ways(t, testLaneHandsOver) }

func testLaneHandsOver(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, way)
	requests := getRequest("/api/segment/get/order") + getRequest("/v1/ids/segment/order") + getRequest("/healthz") + getRequest("/api/segment/get/order")
	for id, piece := 1, 1; piece < len(requests)+200; id, piece = id+3, piece+50 {
		conn := r.dial(t)
		for rest := requests; len(rest) > 0; {
			n, err := io.WriteString(conn, rest[:min(piece, len(rest))])
			if err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		answers := bufio.NewReader(conn)
		for _, want := range []string{fmt.Sprint(id), fmt.Sprintf("{\"ids\":[\"%d\"]}\n", id+1), "ok", fmt.Sprint(id + 2)} {
			if status, body := readAnswer(t, answers); status != 200 || strings.TrimSpace(body) != strings.TrimSpace(want) {
				t.Errorf("%d %q, want %q", status, body, want)
			}
		}
		_ = conn.Close()
	}
}

// The answers to a long pipeline come in order and complete.
func TestLanePipeline(t *testing.T) { ways(t, testLanePipeline) }

func testLanePipeline(t *testing.T, way func(*server.Options)) {
	const n = 20_000
	r := run(t, nil, way)
	conn := r.dial(t)
	go func() { _, _ = io.WriteString(conn, strings.Repeat(getRequest("/api/segment/get/order"), n)) }() // an answer is missing if it fails
	answers := bufio.NewReader(conn)
	for i := range n {
		if _, body := readAnswer(t, answers); body != fmt.Sprint(i+1) {
			t.Fatalf("answer %d is %q", i+1, body)
		}
	}
}

// Garbage gets its 400 at once, as the first input of a connection and after a fast answer. One
// http.Server for both versions of HTTP would wait 5 seconds for the preface of HTTP/2.
func TestLaneAnswersGarbage(t *testing.T) { ways(t, testLaneAnswersGarbage) }

func testLaneAnswersGarbage(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, way)
	for _, before := range []string{"", getRequest("/api/segment/get/order"), getRequest("/healthz")} {
		conn := r.dial(t)
		answers := bufio.NewReader(conn)
		fmt.Fprint(conn, before)
		if before != "" {
			readAnswer(t, answers)
		}
		if err := conn.SetReadDeadline(time.Now().Add(4 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(conn, "rubbish\r\n")
		if status, _ := readAnswer(t, answers); status != 400 {
			t.Errorf("after %q: %d", before, status)
		}
	}
}

// A request that waits for the store holds up no other, and is answered when the server stops
// meanwhile; connections without a request are closed.
func TestLaneDrains(t *testing.T) { ways(t, testLaneDrains) }

func testLaneDrains(t *testing.T, way func(*server.Options)) {
	r, release := runHeld(t, way)
	waiting, idle := r.dial(t), r.dial(t)
	fmt.Fprint(waiting, getRequest("/api/segment/get/order"))
	r.wantWaiting(t)
	fmt.Fprint(idle, getRequest("/api/uuid/get/x"))
	if status, _ := readAnswer(t, bufio.NewReader(idle)); status != 200 {
		t.Errorf("beside a request that waits: %d", status)
	}
	r.stop()
	until(t, "closed for new connections", func() bool { _, err := net.Dial("tcp", r.addr); return err != nil })
	release()
	if _, body := readAnswer(t, bufio.NewReader(waiting)); body != "1" {
		t.Errorf("the request that waited: %q", body)
	}
	for _, conn := range []net.Conn{waiting, idle} {
		if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
			t.Errorf("at the end: %q, %v", rest, err)
		}
		_ = conn.Close()
	}
}

// A request that still waits late in a stop gets the reason from net/http.
func TestLaneTellsOfTheStop(t *testing.T) { ways(t, testLaneTellsOfTheStop) }

func testLaneTellsOfTheStop(t *testing.T, way func(*server.Options)) {
	t.Parallel()
	r, _ := runHeld(t, func(o *server.Options) { way(o); o.Config.ShutdownTimeout = 10 * time.Second })
	conn := r.dial(t)
	fmt.Fprint(conn, getRequest("/api/segment/get/order"))
	r.wantWaiting(t)
	r.stop()
	if answer, err := io.ReadAll(conn); err != nil || !strings.Contains(string(answer), "the server is stopping") {
		t.Errorf("%q, %v", answer, err)
	}
	r.wantStop(t)
}

// A request that waits in the lane keeps no other connection from learning of the stop.
func TestLaneHoldsUpNoStop(t *testing.T) { ways(t, testLaneHoldsUpNoStop) }

func testLaneHoldsUpNoStop(t *testing.T, way func(*server.Options)) {
	r, release := runHeld(t, func(o *server.Options) { way(o); o.Config.ShutdownTimeout = time.Minute })
	waiting, other := r.dial(t), r.dial(t)
	fmt.Fprint(other, getRequest("/healthz"))
	if status, _ := readAnswer(t, bufio.NewReader(other)); status != 200 {
		t.Errorf("%d", status)
	}
	fmt.Fprint(waiting, getRequest("/api/segment/get/order"))
	r.wantWaiting(t)
	r.stop()
	if err := other.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("another connection, while the request waits: %v", err)
	}
	release()
	if _, body := readAnswer(t, bufio.NewReader(waiting)); body != "1" {
		t.Errorf("the request that waited: %q", body)
	}
	for _, conn := range []net.Conn{waiting, other} {
		_ = conn.Close()
	}
}

// Where no ID can be had, net/http says so on the same connection.
func TestLaneErrors(t *testing.T) { ways(t, testLaneErrors) }

func testLaneErrors(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, way)
	conn := r.dial(t)
	fmt.Fprint(conn, getRequest("/api/segment/get/order")+getRequest("/v1/ids/segment/missing")+getRequest("/api/segment/get/missing")+getRequest("/v1/ids/segment/order"))
	answers := bufio.NewReader(conn)
	for i, want := range []int{200, 404, 500, 200} {
		if status, body := readAnswer(t, answers); status != want {
			t.Errorf("answer %d: %d %s, want %d", i, status, body, want)
		}
	}
}

// With CORS the answers of /v1 depend on the origin, which the lane leaves to net/http.
func TestLaneWithCORS(t *testing.T) { ways(t, testLaneWithCORS) }

func testLaneWithCORS(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, func(o *server.Options) { way(o); o.Config.CORSOrigins = []string{"https://shop.example"} })
	conn := r.dial(t)
	fmt.Fprint(conn, getRequest("/v1/ids/segment/order"))
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || res.Header.Get("Vary") == "" {
		t.Errorf("%v, %v", res, err)
	}
}

// Logged requests bypass the lane.
func TestLaneWithAccessLog(t *testing.T) { ways(t, testLaneWithAccessLog) }

func testLaneWithAccessLog(t *testing.T, way func(*server.Options)) {
	r := run(t, nil, func(o *server.Options) { way(o); o.Config.Log.Access = 1 })
	conn := r.dial(t)
	fmt.Fprint(conn, getRequest("/api/segment/get/order")+getRequest("/v1/ids/segment/order"))
	answers := bufio.NewReader(conn)
	for range 2 {
		if status, body := readAnswer(t, answers); status != 200 {
			t.Errorf("%d %s", status, body)
		}
	}
	_ = conn.Close()
	r.wantStop(t)
	if n := strings.Count(r.log.String(), "msg=access"); n != 2 {
		t.Errorf("%d requests are in the log", n)
	}
}

// A client that never sends its first request, or the rest of it, is closed.
func TestLaneHeaderTimeout(t *testing.T) { ways(t, testLaneHeaderTimeout) }

func testLaneHeaderTimeout(t *testing.T, way func(*server.Options)) {
	t.Parallel()
	r := run(t, nil, way)
	start := time.Now()
	for _, begin := range []string{"", "GET /api/segment/get/order HTT"} {
		conn := r.dial(t)
		fmt.Fprint(conn, begin)
		wantCut(t, conn)
	}
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("they were kept for %v", took)
	}
}
