package web

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A client that does not send its body is let go, whether or not a handler reads it.
func TestSlowBodyIsBounded(t *testing.T) {
	const limit = 200 * time.Millisecond
	mux := http.NewServeMux()
	mux.HandleFunc("/reads", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, "slow", http.StatusRequestTimeout)
		}
	})
	mux.HandleFunc("/ignores", func(http.ResponseWriter, *http.Request) {})
	srv := httptest.NewServer(boundBody(mux, limit))
	defer srv.Close()
	for path, want := range map[string]int{"/reads": http.StatusRequestTimeout, "/ignores": http.StatusOK} {
		conn, err := net.Dial("tcp", srv.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf", path)
		buf := bufio.NewReader(conn)
		res, err := http.ReadResponse(buf, nil)
		if err != nil || res.StatusCode != want {
			t.Fatalf("%s: %v, %v; want %d", path, res, err, want)
		}
		if _, err := io.Copy(io.Discard, buf); err != nil {
			t.Errorf("%s: the connection is kept: %v", path, err)
		}
	}
}

// The bound is one on the body: an answer may take longer, and the connection goes on.
func TestBodyBoundEndsWithTheBody(t *testing.T) {
	const limit = 100 * time.Millisecond
	var conns atomic.Int32
	srv := httptest.NewUnstartedServer(boundBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		select {
		case <-r.Context().Done():
			t.Errorf("the request was given up: %v", r.Context().Err())
		case <-time.After(3 * limit):
		}
	}), limit))
	srv.Config.Protocols = protocols(true, true)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	srv.Start()
	defer srv.Close()
	for _, p := range []*http.Protocols{protocols(true, false), protocols(false, true)} {
		conns.Store(0)
		transport := &http.Transport{Protocols: p}
		for range 2 {
			res, err := (&http.Client{Transport: transport}).Post(srv.URL, "text/plain", strings.NewReader("x"))
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("%v: %v, %v", p, res, err)
			}
			_ = res.Body.Close()
		}
		if got := conns.Load(); got != 1 {
			t.Errorf("%v: %d connections, want one", p, got)
		}
		transport.CloseIdleConnections()
	}
}

func protocols(one, two bool) *http.Protocols {
	p := new(http.Protocols)
	p.SetHTTP1(one)
	p.SetUnencryptedHTTP2(two)
	return p
}

// However often clients make net/http log something, the log stays short.
func TestSparseLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		log := slog.NewLogLogger(newSparse(slog.NewTextHandler(&out, nil)), slog.LevelWarn)
		for range 1000 {
			log.Print("http: TLS handshake error")
		}
		if n := strings.Count(out.String(), "handshake"); n != 20 {
			t.Errorf("%d lines, want 20", n)
		}
		time.Sleep(time.Second)
		log.Print("later")
		if !strings.Contains(out.String(), "level=WARN msg=later") {
			t.Error("nothing is logged any more")
		}
	})
}

// With a single processor, other goroutines run between two requests of a connection.
func TestYield(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	h := yield(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	const requests, least = 100, 90 // sometimes the scheduler picks the goroutine that has just yielded
	var others atomic.Int64
	for range requests {
		go others.Add(1)
		h.ServeHTTP(nil, nil)
	}
	if got := others.Load(); got < least {
		t.Errorf("others have run %d times between %d requests", got, requests)
	}
}
