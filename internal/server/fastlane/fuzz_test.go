package fastlane

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/browser"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
)

// A keyed source answers each key with one ID, always the same.
type keyed struct{}

func (keyed) Next(ctx context.Context, key string) (issuer.ID, error) {
	waits := strings.HasPrefix(key, "wait")
	switch {
	case waits && errors.Is(context.Cause(ctx), frontend.ErrWaits):
		return issuer.ID{}, fmt.Errorf("wait: %w", frontend.ErrWaits)
	case key == "none", key == "wait-none":
		return issuer.ID{}, leaf.ErrUnknownTag
	case key == "dry":
		return issuer.ID{}, leaf.ErrExhausted
	}
	return issuer.ID{Number: int64(1000*len(key)) + int64(key[0])}, nil
}

func (k keyed) Take(ctx context.Context, key string, n int) (issuer.IDs, error) {
	id, err := k.Next(ctx, key)
	return issuer.IDs{Ranges: []leaf.Range{{Start: id.Number, End: id.Number + int64(n)}}}, err
}

func (k keyed) Check(ctx context.Context, key string) error {
	_, err := k.Next(ctx, key)
	return err
}

// A numbered is a keyed source of numbers.
type numbered struct{ keyed }

func (k numbered) Next(ctx context.Context, key string) (int64, error) {
	id, err := k.keyed.Next(ctx, key)
	return id.Number, err
}

// Take returns two ranges of a few digits.
func (k numbered) Take(ctx context.Context, key string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	id, err := k.Next(ctx, key)
	if err != nil {
		return dst, err
	}
	half := int64(n / 2)
	if half > 0 {
		dst = append(dst, leaf.Range{Start: id, End: id + half})
	}
	return append(dst, leaf.Range{Start: 95, End: 95 + int64(n) - half}), nil
}

const token = "leaf_0123456789012345678901234567890123456789012"

// A pair is a lane and the server behind it.
type pair struct {
	lane *Lane
	web  *oneByOne
}

// newPair returns both for callers that need a token, or for all.
func newPair(t testing.TB, guarded bool) *pair {
	gate := access.New(access.Options{Local: true})
	if guarded {
		text := fmt.Sprintf("tokens:\n- {name: orders, hash: %q, take: [\"order*\", \"wait*\", none]}\n", access.HashToken(token))
		testgate.Require(t, gate, access.Options{Local: true}, text)
	}
	return newPairBehind(t, gate)
}

func newPairBehind(t testing.TB, gate *access.Gate) *pair {
	opts := &frontend.Options{
		IDs: issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(numbered{}), issuer.Snowflake: issuer.Numbers(numbered{}), issuer.UUID: keyed{}},
			&issuer.Options{MaxBatch: 5000}),
		Access: gate,
	}
	web := browser.New(nil, httpapi.New(http.NewServeMux(), opts))
	return &pair{New(opts, Behind{Wants: func(bool) bool { return false }}), serveOneByOne(t, web)}
}

// addresses are the clients' addresses, which all differ.
var addresses atomic.Uint32

func newAddress() net.Addr {
	n := addresses.Add(1)
	return &net.TCPAddr{IP: net.IPv4(10, byte(n>>16), byte(n>>8), byte(n)), Port: 1234}
}

// oneByOne is net/http for one connection after the other.
type oneByOne struct {
	conns  chan net.Conn
	closed chan struct{}
}

func serveOneByOne(t testing.TB, h http.Handler) *oneByOne {
	l := &oneByOne{make(chan net.Conn), make(chan struct{})}
	server := &http.Server{Handler: h, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	t.Cleanup(func() {
		close(l.closed)
		<-done
	})
	return l
}

func (l *oneByOne) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *oneByOne) Close() error   { return nil }
func (l *oneByOne) Addr() net.Addr { return new(net.TCPAddr) }

// answer returns what net/http answers to input, from a client that then closes its side.
func (l *oneByOne) answer(input []byte) []byte {
	c := &memConn{in: bytes.NewReader(input), addr: newAddress(), closed: make(chan struct{})}
	l.conns <- c
	<-c.closed
	return c.out.Bytes()
}

// A memConn is a connection in memory.
type memConn struct {
	in     *bytes.Reader
	out    bytes.Buffer
	addr   net.Addr
	ended  atomic.Bool
	closed chan struct{}
}

func (c *memConn) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *memConn) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *memConn) LocalAddr() net.Addr              { return new(net.TCPAddr) }
func (c *memConn) RemoteAddr() net.Addr             { return c.addr }
func (c *memConn) SetDeadline(time.Time) error      { return nil }
func (c *memConn) SetReadDeadline(time.Time) error  { return nil }
func (c *memConn) SetWriteDeadline(time.Time) error { return nil }

// CloseWrite ends the connection before net/http waits for the client to close it.
func (c *memConn) CloseWrite() error { return c.Close() }

func (c *memConn) Close() error {
	if !c.ended.Swap(true) {
		close(c.closed)
	}
	return nil
}

// A laneConn drives a session as package conns does.
type laneConn struct {
	addr  net.Addr
	later func(context.Context, []byte) []byte
	given bool
	heir  func(net.Conn)
	tls   *tls.ConnectionState
}

func (c *laneConn) RemoteAddr() net.Addr                         { return c.addr }
func (c *laneConn) TLS() *tls.ConnectionState                    { return c.tls }
func (c *laneConn) Later(f func(context.Context, []byte) []byte) { c.later = f }
func (c *laneConn) HandOver(heir func(net.Conn))                 { c.given, c.heir = true, heir }

// answer sends input in pieces of that size and closes the client's side. It returns the lane's
// answer, the number of answered bytes, and whether the lane hands the rest over.
func (l *Lane) answer(input []byte, piece int) (out []byte, taken int, handed bool) {
	c := &laneConn{addr: newAddress()}
	s := l.newSession(c)
	for end := min(piece, len(input)); !c.given; end = min(end+piece, len(input)) {
		for {
			var n int
			n, out = s.Serve(input[taken:end], out)
			taken += n
			later := c.later
			if c.later = nil; later != nil {
				out = later(context.Background(), out)
			} else if n == 0 || c.given {
				break
			}
		}
		if end == len(input) {
			break
		}
	}
	if rest := input[taken:]; len(rest) > 0 && !c.given {
		s.HalfClosed(rest)
	}
	return out, taken, c.given
}

var moments = regexp.MustCompile(`Date: [^\r]*|"timestamp":\d+|<div id='created'>[^<]*`)

// check compares the lane's answers, with those of net/http to the rest, with net/http's
// answers to the whole.
func (p *pair) check(t *testing.T, input []byte, piece int) {
	t.Helper()
	got, taken, handed := p.lane.answer(bytes.Clone(input), piece)
	if handed {
		got = append(got, p.web.answer(input[taken:])...)
	}
	want := p.web.answer(input)
	if a, b := moments.ReplaceAll(got, nil), moments.ReplaceAll(want, nil); !bytes.Equal(a, b) {
		t.Errorf("%q in pieces of %d, of which the lane answers %d bytes:\n%s\nnet/http alone:\n%s", input, piece, taken, a, b)
	}
}

// understoodRequests are for the lane.
var understoodRequests = []string{
	"GET /api/segment/get/order HTTP/1.1\r\nHost: localhost:8080\r\n\r\n",
	"GET /api/snowflake/get/a.b-c_D:9 HTTP/1.1\r\nhost:[::1]:80\r\nAccept: */*\r\nUser-Agent: curl/8\r\n\r\n",
	"GET /v1/ids/segment/order HTTP/1.1\r\nHOST:   x  \r\nConnection: keep-alive\r\nAccept: application/json\r\n\r\n",
	"GET /v1/ids/snowflake/order HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip, br\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\n\r\n",
	"GET /api/uuid/get/order HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n",
	"GET /api/segment/get/wait HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/snowflake/order?n=1000 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/wait?n=17 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?ranges=1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?ranges=1&n=100 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=1000000&ranges=1 HTTP/1.1\r\nHost: x\r\n\r\n",
}

// unusualRequests are for net/http.
var unusualRequests = []string{
	"GET /api/segment/get/none HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/dry HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/wait-none HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/ticket/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/nothing/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/order?n=2 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order? HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=0 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=007 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=+7 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=1001 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=6000 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=99999999999 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=1000001&ranges=1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=2&n=3 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?ranges=1&ranges=1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=2&format=text HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=2&ranges=1&ranges=1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/order?n=2;ranges=1 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/none?n=2 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/segment/wait-none?n=2 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /v1/ids/uuid/v4?n=2 HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/order;a=b HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/order/ HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET //api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/%6frder HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/.. HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/ HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET http://x/api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n",
	"HEAD /api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"POST /api/segment/get/order HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
	"get /api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET  /api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/order  HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.0\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost:\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: a/b\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost : x\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\nHost: x\n\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nVia: a\x00b\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nVia: a\rb\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nUser-Agent: Mozilla/5.0\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nSec-Fetch-Site: cross-site\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nOrigin: http://y\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nAuthorization: Basic abc\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nVia: " + strings.Repeat("a", 5000) + "\r\n\r\n",
	"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nVia: " + strings.Repeat("a", 50_000) + "\r\n\r\n",
	"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	"\r\nGET /api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n",
	"GET /api/segment/get/order\r\n",
}

// The lane answers or hands over a request. In both cases a client sees the answer of net/http
// alone, with any requests before and behind, and in any pieces.
func TestAnswers(t *testing.T) {
	p := newPair(t, false)
	usual := understoodRequests[0]
	test := func(request string, ours bool) {
		t.Helper()
		_, taken, _ := p.lane.answer([]byte(usual+request), 1<<20)
		if want := len(usual) + len(request); (taken == want) != ours {
			t.Errorf("%q: the lane answers %v", request, !ours)
		}
		for _, piece := range []int{1, 2, 7, len(request) - 1, len(request) + 1, 1 << 20} {
			p.check(t, []byte(usual+request+usual), piece)
			p.check(t, []byte(request), piece)
		}
	}
	for _, request := range understoodRequests {
		test(request, true)
	}
	for _, request := range unusualRequests {
		test(request, false)
	}
}

// A client with a token gets IDs within its rights, and net/http writes the refusals.
func TestTokens(t *testing.T) {
	p := newPair(t, true)
	const allowed = "GET /v1/ids/segment/order-1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n"
	for request, ours := range map[string]bool{
		"GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n":                           true,
		"GET /api/segment/get/wait HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n":                            true,
		"GET /v1/ids/segment/other HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\n\r\n":                            false,
		"GET /v1/ids/segment/order HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n\r\n":                                    false,
		"GET /v1/ids/segment/order HTTP/1.1\r\nHost: x\r\n\r\n":                                                                   false,
		"GET /v1/ids/segment/order HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + token + "\r\nAuthorization: Bearer x\r\n\r\n": false,
	} {
		if _, taken, _ := p.lane.answer([]byte(request), 1<<20); (taken == len(request)) != ours {
			t.Errorf("%q: the lane answers %v", request, !ours)
		}
		p.check(t, []byte(understoodRequests[0]+request+understoodRequests[4]), 1<<20)
		p.check(t, []byte(request+request), 11)
		// Another request on the connection of a known caller needs its own token.
		if _, taken, _ := p.lane.answer([]byte(allowed+request), 1<<20); (taken == len(allowed+request)) != ours {
			t.Errorf("%q behind one with a token: the lane answers %v", request, !ours)
		}
		p.check(t, []byte(allowed+request), 1<<20)
	}
}

// A request that net/http answers after the lane has tried counts once under the limits.
func TestFailureCountsOnce(t *testing.T) {
	for _, key := range []string{"none", "wait-none", "none?n=1", "wait-none?n=1"} {
		p := newPairBehind(t, access.New(access.Options{Limits: access.Limits{Tags: map[string]access.Limit{"*none": {Rate: 1, Burst: 1, Quota: 1}}}}))
		request := []byte("GET /v1/ids/segment/" + key + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if out, taken, handed := p.lane.answer(request, len(request)); len(out)+taken > 0 || !handed {
			t.Errorf("%s: the lane answers %q", key, out)
		}
		for _, want := range []string{"HTTP/1.1 404 ", "HTTP/1.1 429 "} {
			if got := p.web.answer(request); !bytes.HasPrefix(got, []byte(want)) {
				t.Errorf("%s: %q, want %s", key, got, want)
			}
		}
	}
}

// While a request waits for the store, its client's time to send it has already ended.
func TestWaitingClientIsNotLate(t *testing.T) {
	c := &laneConn{addr: newAddress()}
	s := newPair(t, false).lane.newSession(c)
	if s.Serve([]byte(understoodRequests[5]), nil); c.later == nil || !s.MayIdle() {
		t.Errorf("waits: %v, may idle: %v", c.later != nil, s.MayIdle())
	}
}

// FuzzLane checks that no input is answered otherwise than by net/http alone.
func FuzzLane(f *testing.F) {
	for i, request := range append(unusualRequests, understoodRequests...) {
		f.Add([]byte(request), uint8(i), i%2 == 0)
		f.Add([]byte(understoodRequests[i%4]+request+understoodRequests[0]), uint8(0), i%3 == 0)
	}
	open, guarded := newPair(f, false), newPair(f, true)
	f.Fuzz(func(t *testing.T, input []byte, piece uint8, withTokens bool) {
		p := open
		if withTokens {
			p = guarded
		}
		p.check(t, input, cmp.Or(int(piece), len(input)+1))
	})
}

// A connection does not remember the keys that it asked for.
func TestKeysAreNotKept(t *testing.T) {
	const clients, keys, most = 100, 256, 3 << 20 // bytes; 256 paths of 150 bytes are 50 KB
	p := newPair(t, false)
	inUse := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	before := inUse()
	open := make([]*session, clients)
	for i := range open {
		open[i] = p.lane.newSession(&laneConn{addr: newAddress()})
		for j := range keys {
			input := fmt.Appendf(nil, "GET /v1/ids/segment/%d-%d-%s HTTP/1.1\r\nHost: x\r\n\r\n", i, j, strings.Repeat("x", 100))
			if taken, _ := open[i].Serve(input, nil); taken != len(input) {
				t.Fatalf("%d bytes of %d are answered", taken, len(input))
			}
		}
	}
	if used := inUse() - before; used > most {
		t.Errorf("%d connections keep %d bytes", clients, used)
	}
	runtime.KeepAlive(open)
}

// A request allocates nothing, whether it repeats the last one or not, and whether it has a token.
func TestAllocations(t *testing.T) {
	for _, guarded := range []bool{false, true} {
		s := newPair(t, guarded).lane.newSession(&laneConn{addr: newAddress()})
		var input []byte
		for _, request := range []string{understoodRequests[0], understoodRequests[0], understoodRequests[2], understoodRequests[6], understoodRequests[10]} {
			if guarded {
				request = withToken(request)
			}
			input = append(input, request...)
		}
		out := make([]byte, 0, 4096)
		if n := testing.AllocsPerRun(1000, func() {
			if taken, _ := s.Serve(input, out); taken != len(input) {
				t.Fatalf("%d bytes of %d are answered", taken, len(input))
			}
		}); n > 0.1 { // a second begins now and then
			t.Errorf("%v allocations for five requests, with tokens: %v", n, guarded)
		}
	}
}

func withToken(request string) string {
	return strings.TrimSuffix(request, "\r\n") + "Authorization: Bearer " + token + "\r\n\r\n"
}
