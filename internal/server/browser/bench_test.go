package browser_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/leaf-id/leaf/internal/server/browser"
)

// BenchmarkHeaders measures the cost of the security headers for a request over a connection.
func BenchmarkHeaders(b *testing.B) {
	b.Run("without", func(b *testing.B) { requests(b, next, "curl/8.5.0") })
	b.Run("program", func(b *testing.B) { requests(b, browser.New(nil, next), "curl/8.5.0") })
	b.Run("browser", func(b *testing.B) { requests(b, browser.New(nil, next), "Mozilla/5.0") })
}

func requests(b *testing.B, h http.Handler, agent string) {
	server := httptest.NewServer(h)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	const pipelined = 100
	one := "GET /v1/ids/segment/order HTTP/1.1\r\nHost: x\r\nUser-Agent: " + agent + "\r\n\r\n"
	var batch []byte
	for range pipelined {
		batch = append(batch, one...)
	}
	answer := make([]byte, answerLength(b, conn, one))
	buf := make([]byte, len(answer)*pipelined)
	b.ResetTimer()
	for range b.N/pipelined + 1 {
		if _, err := conn.Write(batch); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(conn, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// answerLength returns how long the answer to a request is, which all have alike.
func answerLength(b *testing.B, conn net.Conn, request string) int {
	if _, err := io.WriteString(conn, request); err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 4096)
	n, err := conn.Read(buf)
	if err != nil {
		b.Fatal(err)
	}
	return n
}
