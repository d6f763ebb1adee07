package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	rpc "connectrpc.com/connect"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A backend is a server behind a proxy, with its three ports.
type backend struct {
	args             []string
	http, grpc, resp int
	server           *server
}

func (b *backend) start(t testing.TB) {
	t.Helper()
	b.server = serveBy(t, b.args...)
}

// A proxied is a fleet of two servers behind one of the examples of deploy/proxies, under load.
type proxied struct {
	t        testing.TB
	servers  [2]*backend
	text     string // the example, for these servers
	grpcPort int
	respPort int
	load
}

func newProxied(t testing.TB, example string) *proxied {
	t.Helper()
	p := &proxied{t: t, grpcPort: freePort(t), respPort: freePort(t)}
	url := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	initShared(t, url, true)
	text, err := os.ReadFile("../deploy/proxies/" + example)
	if err != nil {
		t.Fatal(err)
	}
	file := config(t, "leaf.yaml", "drain_delay: 3s\nstart_wait: 15s\n")
	replace := []string{"listen 9090", fmt.Sprintf("listen 127.0.0.1:%d", p.grpcPort), "bind :9090", fmt.Sprintf("bind 127.0.0.1:%d", p.grpcPort),
		"bind :6380", fmt.Sprintf("bind 127.0.0.1:%d", p.respPort)}
	for i := range p.servers {
		b := &backend{http: freePort(t), grpc: freePort(t), resp: freePort(t)}
		local := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
		b.args = []string{"env", "LEAF_RESP=" + local(b.resp), leafBinary, "serve", "--config", file, "--store", url,
			"--listen", local(b.http), "--grpc", local(b.grpc), "--data", filepath.Join(t.TempDir(), "data")}
		host := fmt.Sprintf("10.0.0.%d:", i+1)
		replace = append(replace, host+"8080 check", local(b.http)+" check", host+"8080 max", local(b.http)+" max",
			host+"9090 proto h2 check port 8080", fmt.Sprintf("%s proto h2 check port %d", local(b.grpc), b.http), host+"9090", local(b.grpc),
			host+"6380 check port 8080", fmt.Sprintf("%s check port %d", local(b.resp), b.http))
		p.servers[i] = b
		b.start(t)
	}
	for line := range strings.Lines(strings.NewReplacer(replace...).Replace(string(text))) {
		if strings.Contains(line, "10.0.0.3") {
			continue // two are enough here
		}
		if strings.Contains(line, "10.0.0.") {
			t.Fatalf("%s still has %s", example, line)
		}
		p.text += line
	}
	return p
}

// begin asks for IDs over HTTP and gRPC, through the proxy.
func (p *proxied) begin(url string) {
	ctx := p.load.begin(p.t)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	for _, path := range []string{"/v1/ids/segment/" + sampleTag + "?format=text", "/api/snowflake/get/x"} {
		for range 3 {
			p.ask(ctx, client, url+path)
		}
	}
	p.askGRPC(ctx)
}

// askGRPC has a client call Next until ctx ends.
func (p *proxied) askGRPC(ctx context.Context) {
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	h2c := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{Protocols: protocols}}
	client := leafv1connect.NewLeafServiceClient(h2c, fmt.Sprintf("http://127.0.0.1:%d", p.grpcPort), rpc.WithGRPC())
	shard := p.seen.Shard()
	p.wg.Go(func() {
		for ctx.Err() == nil {
			var res *leafv1.NextResponse
			var err error
			for range 5 { // as clients of gRPC do; nginx leaves it to them, and HAProxy takes a second to notice a start
				res, err = client.Next(ctx, &leafv1.NextRequest{Key: sampleTag})
				if rpc.CodeOf(err) != rpc.CodeUnavailable {
					break
				}
				time.Sleep(500 * time.Millisecond)
			}
			if err != nil && ctx.Err() != nil {
				return
			}
			if err != nil {
				p.fail(err)
				continue
			}
			shard.Add(res.GetId())
			p.count.Add(1)
			time.Sleep(4 * time.Millisecond) // a small load for the machine
		}
	})
}

// replaceAll kills one server after the other while the other one serves, and starts it again.
func (p *proxied) replaceAll() {
	p.t.Helper()
	p.await(p.t, 200)
	for _, b := range p.servers {
		p.awaitUse(b)
		b.server.kill()
		p.await(p.t, p.count.Load()+300)
		b.start(p.t)
	}
	for _, b := range p.servers {
		p.awaitUse(b)
		b.server.stop()
		p.await(p.t, p.count.Load()+300)
		b.start(p.t)
	}
	p.load.stop()
	p.check(p.t)
	if n := p.errors.Load(); n != 0 {
		p.t.Errorf("%d failed calls", n)
	}
}

// awaitUse waits until the other server serves through the proxy: its page of tags in use has one.
func (p *proxied) awaitUse(next *backend) {
	p.t.Helper()
	for _, b := range p.servers {
		if b == next {
			continue
		}
		until(p.t, minWait, "used by the proxy", func() error {
			page, err := get(b.server.url + "/cache")
			if err == nil && !strings.Contains(page, sampleTag) {
				err = fmt.Errorf("no request has come:\n%s", page)
			}
			return err
		})
	}
}

// Behind the nginx of deploy/proxies a server may be killed or stopped: no call fails.
func TestBehindNginx(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	p := newProxied(t, "nginx.conf")
	p.begin(testserver.Nginx(t, p.text).URL())
	p.replaceAll()
}

// So it is with the HAProxy there, which has the Redis protocol too.
func TestBehindHAProxy(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	p := newProxied(t, "haproxy.cfg")
	p.begin(testserver.HAProxy(t, p.text).URL())
	id, err := incr(p.respPort)
	if err != nil || id < 1 {
		t.Errorf("INCR: %d, %v", id, err)
	}
	p.replaceAll()
	if next, err := incr(p.respPort); err != nil || next == id {
		t.Errorf("INCR: %d after %d, %v", next, id, err)
	}
}

// incr takes an ID over the Redis protocol.
func incr(port int) (int64, error) {
	c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), minWait)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(minWait))
	if _, err := fmt.Fprintf(c, "INCR %s\r\n", sampleTag); err != nil {
		return 0, err
	}
	answer, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(strings.TrimPrefix(answer, ":")), 10, 64)
}
