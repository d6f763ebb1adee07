package server

import (
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
)

// A client has a short time to say that it speaks HTTP/2, and a long one for its first request:
// libraries of gRPC connect long before they call.
func TestGreetingIsBounded(t *testing.T) {
	for sent, want := range map[string]time.Duration{http2.ClientPreface[:5]: readHeaderTimeout, http2.ClientPreface: idleTimeout} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			go func() { _, _ = io.Copy(io.Discard, client) }()
			go func() { _, _ = io.WriteString(client, sent) }()
			began := time.Now()
			g := &greeting{Conn: server}
			if g.speaksGRPC(t.Context(), idleTimeout) {
				t.Error("it speaks gRPC")
			}
			if took := time.Since(began); took != want {
				t.Errorf("after %q it was waited for %v, want %v", sent, took, want)
			}
			_ = server.Close()
		})
	}
}
