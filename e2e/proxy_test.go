package e2e

import (
	"io"
	"net"
	"testing"
	"time"
)

// startProxy forwards TCP connections to target, each chunk delay late, and returns
// its address.
func startProxy(t testing.TB, target string, delay time.Duration) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				client.Close()
				continue
			}
			go forward(client, server, delay)
			go forward(server, client, delay)
		}
	}()
	return listener.Addr().String()
}

// forward copies until either side closes, and then closes both.
func forward(dst io.WriteCloser, src io.ReadCloser, delay time.Duration) {
	defer dst.Close()
	defer src.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := src.Read(buf)
		time.Sleep(delay)
		if _, werr := dst.Write(buf[:n]); err != nil || werr != nil {
			return
		}
	}
}
