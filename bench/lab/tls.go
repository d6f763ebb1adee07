package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
)

// encrypted compares requests over TLS, by HTTP/1.1, HTTP/2 and the Redis protocol, with those to nginx
// and Redis, and to servers that do the least over Go's libraries.
func encrypted(ctx context.Context, l *lab) (r report, err error) {
	dir, cert, key, err := testserver.NewCertificate()
	defer os.RemoveAll(dir)
	if err != nil {
		return r, err
	}
	var batch string
	if err := l.serveLeaf(ctx, func(plain *bench.Leaf) error {
		batch, err = plain.Get(ctx, "/v1/ids/segment/"+wireTag+"?ranges=1&n=100")
		return err
	}); err != nil {
		return r, err
	}
	nginx, err := testserver.StartNginx(fmt.Sprintf("keepalive_requests 1000000000; ssl_certificate %s; ssl_certificate_key %s;"+
		" server { listen 80 ssl http2; location /v1/ { default_type application/json; return 200 '%s'; } location / { return 200 '123456'; } }",
		cert, key, strings.TrimSpace(batch)))
	if err != nil {
		return r, err
	}
	defer nginx.Close()
	redis, err := startSecureRedis(cert, key)
	if err != nil {
		return r, err
	}
	defer redis.Close()
	bare, pid, stop, err := startPeer(ctx, "-tls", cert+","+key)
	if err != nil {
		return r, err
	}
	defer stop()
	server, err := l.start(ctx, fmt.Sprintf("tls:\n  cert: %s\n  key: %s\n", cert, key), "--resp", "127.0.0.1:0")
	if err != nil {
		return r, err
	}
	defer server.Stop()
	e := &secureRun{wireRun: wireRun{lab: l}, all: newDistinct(), nginx: nginx, redis: redis, server: server, barePID: pid}
	e.bare[0], e.bare[1], _ = strings.Cut(bare, " ")
	return e.run(ctx)
}

// A secureRedis is a Redis with a port for TLS.
type secureRedis struct {
	*testserver.RedisServer
	addr string
}

func startSecureRedis(cert, key string) (*secureRedis, error) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_ = free.Close() // Redis takes its port
	addr := free.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	redis, err := testserver.StartRedis(&testserver.RedisOptions{Config: [][2]string{{"appendonly", "no"}, {"tls-port", port},
		{"tls-cert-file", cert}, {"tls-key-file", key}, {"tls-auth-clients", "no"}}})
	return &secureRedis{redis, addr}, err
}

// A secureRun measures servers with TLS in turns.
type secureRun struct {
	wireRun
	all     *distinct
	nginx   *testserver.NginxServer
	redis   *secureRedis
	server  *bench.Leaf
	bare    [2]string // HTTP/1.1 and HTTP/2
	barePID int
}

// add adds a server.
func (e *secureRun) add(name string, pid int, target load.Target, pipeline, count int) *wireServer {
	s := &wireServer{name: name, pid: pid, target: target, clients: clients, pipeline: pipeline, count: count}
	if pid == e.server.PID() {
		s.ours, s.target = true, e.all.of(target)
	}
	e.servers = append(e.servers, s)
	return s
}

func (e *secureRun) run(ctx context.Context) (report, error) {
	trusting := &tls.Config{InsecureSkipVerify: true} // a certificate of this run, on this machine
	at := func(url string) load.Server {
		return load.Server{Addr: url[strings.LastIndex(url, "/")+1:], TLS: trusting, Timeout: 10 * time.Second}
	}
	one := func(url string) load.Target { return load.Routes(at(url), "segment") }
	two := func(url string) load.Target { return newH2("https://"+at(url).Addr, trusting) }
	batch := func(url string) load.Target { return load.V1(at(url), "segment") }
	resp := func(addr string) load.Target { return &load.RESP{Server: at(addr), Scheme: "segment"} }
	nginx, leaf := e.nginx.PID(), e.server.PID()
	ratios := map[string][2]*wireServer{}
	compare := func(key string, ours *wireServer, peer *wireServer) { ratios[key] = [2]*wireServer{ours, peer} }

	ours := e.add("Leaf, HTTP/1.1", leaf, one(e.server.URL), 1, 1)
	compare("tls", ours, e.add("nginx, HTTP/1.1", nginx, one(e.nginx.URL()), 1, 1))
	compare("tls-bare", ours, e.add("a loop over `crypto/tls`, HTTP/1.1", e.barePID, one(e.bare[0]), 1, 1))
	ours = e.add("Leaf, HTTP/2", leaf, two(e.server.URL), 1, 1)
	compare("tls-2", ours, e.add("nginx, HTTP/2", nginx, two(e.nginx.URL()), 1, 1))
	compare("tls-2-bare", ours, e.add("bare `net/http`, HTTP/2", e.barePID, two(e.bare[1]), 1, 1))
	compare("tls-batch", e.add("Leaf, `/v1`, 100 IDs a request", leaf, batch(e.server.URL), 1, 100),
		e.add("nginx, `/v1`, 100 IDs a request", nginx, batch(e.nginx.URL()), 1, 100))
	for _, p := range pipelines[:2] {
		compare(fmt.Sprint("tls-resp-", p), e.add(fmt.Sprint("Leaf, Redis protocol, -P ", p), leaf, resp(e.server.RESP), p, 0),
			e.add(fmt.Sprint("Redis, -P ", p), e.redis.PID(), resp(e.redis.addr), p, 0))
	}
	if err := e.saturate(ctx); err != nil {
		return report{}, err
	}
	found := make(map[string]result)
	for key, pair := range ratios {
		found[key] = result{figure: pair[0].full.cpu.over(pair[1].full.cpu)}
	}
	summary, err := e.all.result()
	return report{table: e.table() + summary, found: found}, err
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
