package load

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// serveText answers each request, or the start of one, of each connection with the next of
// some texts; after the last one of a connection's it is closed.
func serveText(t *testing.T, connections ...[]string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for _, answers := range connections {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			buf := make([]byte, 1<<16)
			for _, text := range answers {
				if _, err := conn.Read(buf); err != nil {
					break
				}
				_, _ = io.WriteString(conn, text)
			}
			conn.Close()
		}
	}()
	return l.Addr().String()
}

const (
	oneID   = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n7"
	chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n8\n\r\n3\r\n9\n1\r\n1\r\n0\r\n0\r\n\r\n"
)

func TestHTTPAnswers(t *testing.T) {
	tests := []struct {
		name, text string
		want       string
	}{
		{"one", oneID, "7"},
		{"chunks", chunked, "8-10"},
		{"an error of the routes", "HTTP/1.1 500 Oops\r\nContent-Length: 62\r\n\r\n" + `{"message":"Result{id=-2}","detail":"unknown tag \"order\"."} `, "HTTP 500: unknown tag \"order\"."},
		{"another error", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 9\r\n\r\n<p>oo\n</p", "HTTP 502: <p>oo </p"},
		{"no number", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n-7", `answer without IDs: "-7"`},
		{"too large a number", "HTTP/1.1 200 OK\r\nContent-Length: 19\r\n\r\n9223372036854775807", `answer without IDs: "9223372036854775807"`},
		{"a long text", "HTTP/1.1 200 OK\r\nContent-Length: 36\r\n\r\n01890a5d-ac96-774b-bcce-b302099a805x", `answer without IDs: "01890a5d-ac96-774b-bcce-b302099a805x"`},
		{"cut short", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123", "connection closed by the server"},
		{"nothing", "", "connection closed by the server"},
		{"not HTTP", "+PONG\r\n\r\n", kindOther},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := Routes(Server{Addr: serveText(t, []string{tt.text}), Timeout: 30 * time.Second}, "segment").Open()
			defer conn.Close()
			call := &Call{Key: "order", Count: 1}
			conn.Do(t.Context(), []*Call{call})
			if got := outcome(call); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// A server that stops in the middle of a line makes a call take too long, and answers nothing wrong.
func TestHTTPStalls(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Len"))
		}
	}()
	conn := Routes(Server{Addr: l.Addr().String(), Timeout: 50 * time.Millisecond}, "segment").Open()
	defer conn.Close()
	call := &Call{Key: "order", Count: 1}
	conn.Do(t.Context(), []*Call{call})
	if kind, _ := kindOf(call.Err); kind != kindTimeout || Misfit(call.Err) {
		t.Errorf("got %v", call.Err)
	}
}

func rangesText(ids *IDs) string {
	var parts []string
	for _, r := range ids.Ranges {
		text := itoa(r.Start)
		if r.Len() > 1 {
			text += "-" + itoa(r.End-1)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " ")
}

// A connection that the server closes is made again.
func TestHTTPReconnects(t *testing.T) {
	bye := strings.Replace(oneID, "\r\n", "\r\nConnection: close\r\n", 1)
	addr := serveText(t, []string{oneID, bye}, []string{oneID, ""}, []string{oneID})
	conn := Routes(Server{Addr: addr, Timeout: 30 * time.Second}, "segment").Open()
	defer conn.Close()
	for i, wantErr := range []bool{false, false, false, true, false} {
		call := &Call{Key: "order", Count: 1}
		conn.Do(t.Context(), []*Call{call})
		if (call.Err != nil) != wantErr {
			t.Errorf("call %d: %v", i, call.Err)
		}
	}
}

// Requests sent at once get their answers in turn; those behind a closed connection fail.
func TestHTTPPipeline(t *testing.T) {
	second := strings.Replace(oneID, "\n7", "\n8", 1)
	bye := strings.Replace(oneID, "\r\n", "\r\nConnection: close\r\n", 1)
	const busy = "HTTP/1.1 503 Wait\r\nContent-Length: 0\r\n\r\n"
	conn := Routes(Server{Addr: serveText(t, []string{oneID + busy + second + bye}), Timeout: 30 * time.Second}, "segment").Open()
	defer conn.Close()
	calls := make([]*Call, 5)
	for i := range calls {
		calls[i] = &Call{Key: "order", Count: 1}
	}
	Do(t.Context(), conn, calls)
	for i, want := range []string{"7", "HTTP 503", "8", "7", "connection closed by the server"} {
		if got := outcome(calls[i]); got != want {
			t.Errorf("call %d: %q, want %q", i, got, want)
		}
	}
}

// An answer that does not fit its request is told from a failed call.
func TestMisfit(t *testing.T) {
	for text, want := range map[string]bool{
		oneID: false, strings.Replace(oneID, "\n7", "\nx", 1): true, "ID 7\r\n\r\n": true, "": false, "HTTP/1": false, "HTTP/1.1 200 OK\r\nRetry": false,
		"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n123": false, "HTTP/1.1 503 Wait\r\nContent-Length: 0\r\n\r\n": false,
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n7\n8": true, // two IDs
	} {
		conn := Routes(Server{Addr: serveText(t, []string{text}), Timeout: 30 * time.Second}, "segment").Open()
		call := &Call{Key: "order", Count: 1}
		Do(t.Context(), conn, []*Call{call})
		conn.Close()
		if Misfit(call.Err) != want {
			t.Errorf("%q: %v", text, call.Err)
		}
	}
}

// The end of the context ends a call that waits.
func TestHTTPCutShort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = conn.Read(make([]byte, 1))
		cancel()
		_, _ = io.Copy(io.Discard, conn)
	}()
	conn := Routes(Server{Addr: l.Addr().String(), Timeout: time.Hour}, "segment").Open()
	defer conn.Close()
	call := &Call{Key: "order", Count: 1}
	conn.Do(ctx, []*Call{call})
	if call.Err == nil {
		t.Error("no error")
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
