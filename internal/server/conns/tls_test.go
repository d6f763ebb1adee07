package conns_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/server/conns"
)

// An encrypted connection is served like others, and its session knows the state of its encryption. A
// client in plain text gets nothing.
func TestTLS(t *testing.T) {
	pair := httptest.NewUnstartedServer(nil)
	pair.StartTLS() // it has a certificate
	defer pair.Close()
	names := make(chan string, 2)
	_, addr := serve(t, func(c *conns.Conn) conns.Session {
		names <- c.TLS().ServerName
		return newLines(nil)(c)
	}, &conns.Options{TLS: &tls.Config{Certificates: pair.TLS.Certificates}})
	plain, r := dial(t, addr)
	fmt.Fprintln(plain, "GET /")
	if line, err := r.ReadString('\n'); line == "GET /\n" || err == nil && line == "" {
		t.Errorf("in plain text: %q, %v", line, err)
	}
	raw, _ := dial(t, addr)
	roots := x509.NewCertPool()
	roots.AddCert(pair.Certificate())
	conn := tls.Client(raw, &tls.Config{ServerName: "example.com", RootCAs: roots})
	if err := conn.SetDeadline(time.Now().Add(timeout)); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(conn)
	ask(t, conn, in, "a")
	fmt.Fprint(conn, "b\nquit\n")
	wantEnd(t, in, "b\n")
	if got := <-names; got != "example.com" || len(names) > 0 {
		t.Errorf("served %q and %d more", got, len(names))
	}
}
