package e2e

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
	loadgen "github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// clientTags are the tags of these clients.
var clientTags = []segment.Tag{
	{Name: "one", MaxID: 1_000_001, Step: 1}, {Name: "few", MaxID: 1_000_001, Step: 10},
	{Name: "some", MaxID: 1_000_001, Step: 1000}, {Name: "many", MaxID: 1_000_001, Step: 100_000},
}

// TestClients has clients use their connections in every way that clients do, while nothing else
// goes wrong. Each answer has as many IDs as its request asked for, and no ID comes twice.
func TestClients(t *testing.T) {
	t.Parallel()
	c := newClientele(t, leafBinary)
	defer c.stop()
	until(t, 10*time.Minute, "answered", func() error {
		if n, want := c.history.Answered(), int64(figure(50_000, 8_000_000)); n < want && c.history.Fits() == nil {
			return fmt.Errorf("%d calls of %d", n, want)
		}
		return nil
	})
	c.stop()
	c.report()
}

// A clientele is the clients of two servers, one with TLS, that share a store.
type clientele struct {
	t       testing.TB
	seed    uint64
	start   time.Time
	history labcheck.History
	servers []*clientServer
	lasting atomic.Int64 // connections so far

	over context.Context
	stop func()
	wg   sync.WaitGroup
}

// A clientServer is one server, and how clients reach it.
type clientServer struct {
	name             string
	http, resp, grpc string
	tls              *tls.Config // nil: no TLS
}

// newClientele starts the servers, with one event loop each, and all clients.
func newClientele(t *testing.T, program ...string) *clientele {
	c := &clientele{t: t, seed: labSeed(t), start: time.Now()}
	store := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
	initBoth(t, store, clientTags)
	cert, key := testserver.Certificate(t)
	for i, name := range []string{"plain", "tls"} {
		port, err := testserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s := &clientServer{name: name, resp: fmt.Sprint("127.0.0.1:", port)}
		line := []string{"env", "GOMAXPROCS=2", "LEAF_SNOWFLAKE_ENABLE=true"}
		if i == 1 {
			s.tls = &tls.Config{InsecureSkipVerify: true}
			line = append(line, "LEAF_TLS_CERT="+cert, "LEAF_TLS_KEY="+key)
		}
		line = append(append(line, program...), serveArgs([]string{"--resp", s.resp, "--grpc", "127.0.0.1:0", "--store", store, "--data", filepath.Join(t.TempDir(), "data")})...)
		server := serveBy(t, line...)
		_, s.http, _ = strings.Cut(server.url, "://")
		s.grpc = portAddress(t, server, "grpc")
		c.servers = append(c.servers, s)
	}
	var cancel context.CancelFunc
	c.over, cancel = context.WithCancel(t.Context())
	c.stop = func() { cancel(); c.wg.Wait() }
	c.begin()
	return c
}

// begin starts the clients.
func (c *clientele) begin() {
	forms := map[string]func(*clientServer, *rand.Rand, string){
		"pipeline": c.pipeline, "late": c.late, "half": c.half, "leaver": c.leaver, "grpc": c.streams,
	}
	for name, times := range map[string]int{"pipeline": 4, "late": 2, "half": 2, "leaver": 1, "grpc": 1} {
		for _, s := range c.servers {
			for i := range times {
				rng := rand.New(rand.NewPCG(c.seed, uint64(len(name)<<16|i<<8|len(s.name))))
				c.wg.Go(func() {
					for c.over.Err() == nil {
						forms[name](s, rng, fmt.Sprintf("%s-%s-%d", name, s.name, c.lasting.Add(1)))
					}
				})
			}
		}
	}
}

func (c *clientele) elapsed() time.Duration { return time.Since(c.start) }

// dial connects; http is for HTTP, else it is the Redis protocol.
func (c *clientele) dial(s *clientServer, http bool) (net.Conn, error) {
	addr, protocols := s.resp, []string(nil)
	if http {
		addr, protocols = s.http, []string{"http/1.1"}
	}
	conn, err := new(net.Dialer).DialContext(c.over, "tcp", addr)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(5 * time.Minute)) // the machine may be busy
		context.AfterFunc(c.over, func() { conn.Close() })
	}
	if err != nil || s.tls == nil {
		return conn, err
	}
	config := s.tls.Clone()
	config.NextProtos = protocols
	return tls.Client(conn, config), nil
}

// pipeline sends several pipelines on one connection, and reads each at once.
func (c *clientele) pipeline(s *clientServer, rng *rand.Rand, name string) {
	http := rng.IntN(3) == 0
	conn, err := c.dial(s, http)
	if err != nil {
		c.note(name, err)
		return
	}
	defer conn.Close()
	r := bufio.NewReader(conn)
	for range 20 {
		all := respRequests(rng, 500)
		if http {
			all = httpRequests(rng, 100, false)
		}
		if !c.exchange(s, name, conn, r, all, nil) {
			return
		}
	}
}

// late sends requests for large answers, and reads only once others have been answered.
func (c *clientele) late(s *clientServer, rng *rand.Rand, name string) {
	conn, err := c.dial(s, false)
	if err != nil {
		c.note(name, err)
		return
	}
	defer conn.Close()
	raw := conn
	if secret, ok := conn.(*tls.Conn); ok {
		raw = secret.NetConn()
	}
	_ = raw.(*net.TCPConn).SetReadBuffer(16 << 10)
	var all []request
	for range 60 {
		all = append(all, next("segment", clientTags[rng.IntN(len(clientTags))].Name, 5000))
		all = append(all, respRequests(rng, 100)...)
	}
	c.exchange(s, name, conn, bufio.NewReader(conn), all, func() error {
		for before := c.history.Answered(); c.history.Answered() < before+1000 && c.over.Err() == nil; {
			time.Sleep(time.Millisecond)
		}
		return nil
	})
}

// half sends a pipeline and closes its side, and reads all answers and the end.
func (c *clientele) half(s *clientServer, rng *rand.Rand, name string) {
	http := rng.IntN(2) == 0
	conn, err := c.dial(s, http)
	if err != nil {
		c.note(name, err)
		return
	}
	defer conn.Close()
	all := respRequests(rng, 300)
	if http {
		all = httpRequests(rng, 100, true)
	}
	r := bufio.NewReader(conn)
	if !c.exchange(s, name, conn, r, all, func() error { return closeWrite(conn) }) {
		return
	}
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		c.note(name, fmt.Errorf("%w: behind the last answer came %.80q, %w", errMisfit, rest, cmpError(err)))
	}
}

// cmpError is err for messages.
func cmpError(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// leaver sends a pipeline, and goes without reading it.
func (c *clientele) leaver(s *clientServer, rng *rand.Rand, _ string) {
	conn, err := c.dial(s, false)
	if err != nil {
		return
	}
	c.send(conn, respRequests(rng, 1000))
	conn.Close()
	time.Sleep(10 * time.Millisecond)
}

func (c *clientele) send(conn net.Conn, all []request) {
	var text strings.Builder
	for _, q := range all {
		text.WriteString(q.text)
	}
	_, _ = io.WriteString(conn, text.String()) // where it fails, the reads fail
}

// exchange sends requests, does something, and reads the answers; false: the connection has ended.
func (c *clientele) exchange(s *clientServer, name string, conn net.Conn, r *bufio.Reader, all []request, between func() error) bool {
	answers := pipelined{receipt: labcheck.Receipt{Server: s.name, Client: name, Begin: c.elapsed()}}
	c.send(conn, all)
	if between != nil {
		if err := between(); err != nil {
			c.note(name, err)
			return false
		}
	}
	defer func() { answers.add(&c.history, c.elapsed()) }()
	for i := range all {
		ranges, err := all[i].answer(r)
		if err == nil {
			answers.note(all[i].space, ranges)
			continue
		}
		c.note(name, err)
		if !errors.Is(err, errRefused) {
			return false
		}
	}
	return true
}

// streams makes many calls at a time over one connection of gRPC.
func (c *clientele) streams(s *clientServer, rng *rand.Rand, name string) {
	addr := []string{s.http, s.grpc}[rng.IntN(2)]
	target := loadgen.NewGRPC(loadgen.Server{Addr: addr, TLS: s.tls, Timeout: 5 * time.Minute}, "segment", 1)
	defer target.Close()
	var wg sync.WaitGroup
	for i := range 30 {
		conn, seed := target.Open(), rng.Uint64()
		wg.Go(func() {
			own := rand.New(rand.NewPCG(seed, uint64(i)))
			for range 100 {
				call := &loadgen.Call{Key: clientTags[own.IntN(len(clientTags))].Name, Count: 1 + own.IntN(40)}
				receipt := labcheck.Receipt{Space: call.Key, Server: s.name, Client: name, Begin: c.elapsed()}
				loadgen.Do(c.over, conn, []*loadgen.Call{call})
				if receipt.End = c.elapsed(); call.Err != nil {
					c.note(name, call.Err)
					return
				}
				c.history.Add(receipt, call.IDs.Ranges...)
			}
		})
	}
	wg.Wait()
}

// note records an error: all but a refusal is a wrong answer, since nothing goes wrong here.
func (c *clientele) note(client string, err error) {
	_, refused := errors.AsType[*loadgen.Failure](err)
	switch {
	case c.over.Err() != nil:
	case errors.Is(err, errRefused), refused && !loadgen.Misfit(err):
		c.history.Fail(labcheck.Failure{Client: client, Begin: c.elapsed(), End: c.elapsed(), Err: err})
		time.Sleep(time.Millisecond)
	default:
		c.history.Wrong(client, err)
	}
}

// report looks at all answers, and saves the result.
func (c *clientele) report() {
	twice, err := c.history.Duplicates(nil)
	err = errors.Join(err, c.history.Fits(), c.history.Ordered())
	r := c.history.Result(0, c.elapsed())
	r.Test, r.Seed, r.Store, r.Scheme = c.t.Name(), c.seed, "sqlite", "clients"
	r.Nemeses, r.Duplicates, r.Took, r.Served, r.Silence = map[string]int{}, twice, c.elapsed(), nil, 0
	if err != nil {
		r.Error = err.Error()
		c.t.Errorf("%v\nreplay: LEAF_SEED=%d go test -run '%s$' .", err, c.seed, c.t.Name())
	}
	c.t.Logf("%d answered calls of %d clients, %d ranges, %d IDs, %d duplicates, %d refused, seed %d", r.Answered, r.Clients, r.Ranges, r.IDs, twice, r.Failed, c.seed)
	if dir := os.Getenv("LEAF_REPORT"); dir != "" {
		if err := r.Save(dir); err != nil {
			c.t.Error(err)
		}
	}
}
