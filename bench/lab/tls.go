package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A certifier makes a certificate outside of a test.
type certifier struct{ cleanups []func() }

// Helper does nothing.
func (*certifier) Helper() {}

// Cleanup keeps f for the end.
func (c *certifier) Cleanup(f func()) { c.cleanups = append(c.cleanups, f) }

// Fatalf has no test to fail.
func (*certifier) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

func (c *certifier) close() {
	for _, f := range c.cleanups {
		f()
	}
}

// encrypted compares requests over TLS, over HTTP/2 and for batches with an nginx that answers a
// constant.
func encrypted(ctx context.Context, l *lab) (r report, err error) {
	c := &certifier{}
	defer c.close()
	cert, key := testserver.Certificate(c)
	err = l.serveLeaf(ctx, func(plain *bench.Leaf) error {
		batch, err := plain.Get(ctx, "/v1/ids/segment/"+wireTag+"?ranges=1&n=100")
		if err != nil {
			return err
		}
		nginx, err := testserver.StartNginx(fmt.Sprintf("keepalive_requests 1000000000; ssl_certificate %s; ssl_certificate_key %s;"+
			" server { listen 80 ssl http2; location /v1/ { default_type application/json; return 200 '%s'; } location / { return 200 '1234567890'; } }",
			cert, key, strings.TrimSpace(batch)))
		if err != nil {
			return err
		}
		defer nginx.Close()
		server, err := l.startEncrypted(ctx, cert, key)
		if err != nil {
			return err
		}
		defer server.Stop()
		r, err = l.encryptedBeside(ctx, nginx, server)
		return err
	})
	return r, err
}

// startEncrypted starts a server with a certificate.
func (l *lab) startEncrypted(ctx context.Context, cert, key string) (*bench.Leaf, error) {
	binary, err := l.leaf(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(l.dir, "tls")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "leaf.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "tls:\n  cert: %s\n  key: %s\n", cert, key), 0o600); err != nil {
		return nil, err
	}
	return bench.Start(binary, "--config", config, "--listen", "127.0.0.1:0", "--resp", "off", "--data", filepath.Join(dir, "data"))
}

func (l *lab) encryptedBeside(ctx context.Context, nginx *testserver.NginxServer, server *bench.Leaf) (report, error) {
	trusting := &tls.Config{InsecureSkipVerify: true} // a certificate of this run, on this machine
	host := func(url string) string { _, h, _ := strings.Cut(url, "://"); return h }
	at := func(url string) load.Server {
		return load.Server{Addr: host(url), TLS: trusting, Timeout: 10 * time.Second}
	}
	two := func(url string) load.Target { return newH2("https://"+host(url), trusting) }
	all, w := newDistinct(), &wireRun{lab: l}
	pair := func(name string, count int, of func(url string) load.Target) {
		w.servers = append(w.servers,
			&wireServer{name: "nginx, " + name, pid: nginx.PID(), target: of(nginx.URL()), clients: clients, pipeline: 1, count: count},
			&wireServer{name: "Leaf, " + name, pid: server.PID(), target: all.of(of(server.URL)), clients: clients, pipeline: 1, count: count, ours: true})
	}
	pair("TLS", 1, func(url string) load.Target { return load.Routes(at(url), "segment") })
	pair("TLS, HTTP/2", 1, two)
	pair("TLS, `/v1`, 100 IDs a request", 100, func(url string) load.Target { return load.V1(at(url), "segment") })
	if err := w.saturate(ctx); err != nil {
		return report{}, err
	}
	found := make(map[string]result)
	for i, key := range []string{"tls", "tls-2", "tls-batch"} {
		found[key] = result{figure: w.servers[2*i+1].full.cpu.over(w.servers[2*i].full.cpu)}
	}
	summary, err := all.result()
	return report{table: w.table() + summary, found: found}, err
}

// An h2 is a target over HTTP/2, by the client of net/http.
type h2 struct {
	client *http.Client
	url    string
}

func newH2(url string, c *tls.Config) h2 {
	return h2{&http.Client{Transport: &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}, Timeout: 10 * time.Second}, url}
}

// Open returns a client of the connection that all share.
func (t h2) Open() load.Conn { return t }

// Close leaves the connection to the others.
func (t h2) Close() error { return nil }

// Do sends one request after the other.
func (t h2) Do(ctx context.Context, calls []*load.Call) {
	for _, call := range calls {
		id, err := t.get(ctx, call.Key)
		if call.Err = err; err == nil {
			call.IDs.Ranges = append(call.IDs.Ranges[:0], leaf.Range{Start: id, End: id + 1})
		}
	}
}

func (t h2) get(ctx context.Context, key string) (int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.url+"/api/segment/get/"+key, nil)
	if err != nil {
		return 0, err
	}
	res, err := t.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusOK || res.ProtoMajor != 2 {
		return 0, fmt.Errorf("%s %s: %s", res.Proto, res.Status, body)
	}
	return strconv.ParseInt(string(body), 10, 64)
}
