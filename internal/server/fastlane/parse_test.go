package fastlane

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/net/http2"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// The lane takes keys, hosts and lines that net/http would take as they are, up to the last letter
// of each range.
func TestLiteral(t *testing.T) {
	for name, tt := range map[string]struct {
		is      func(string) bool
		yes, no []string
	}{
		"key": {
			isKey,
			[]string{"a", "z", "A", "Z", "0", "9", "-", "_", ":", "a.b", strings.Repeat("k", 128)},
			[]string{"", ".", "..", "`", "{", "@", "[", "/", ";", "a b", "a%20b", "é", "\x7f", strings.Repeat("k", 129)},
		},
		"host": {
			func(s string) bool { return isHost([]byte(s)) },
			[]string{"a", "z", "A", "Z", "0", "9", "a-b.c_d:80", "[::1]:8080"},
			[]string{"", "`", "{", "@", "/", ";", "a b", "é", "a,b", "u@h"},
		},
		"line": {
			func(s string) bool { return isPlain([]byte(s)) },
			[]string{"", " ", "~", "Host: x"},
			[]string{"\x1f", "\x7f", "a\tb", "a\rb", "é"},
		},
	} {
		for _, text := range tt.yes {
			if !tt.is(text) {
				t.Errorf("%s: %q is none", name, text)
			}
		}
		for _, text := range tt.no {
			if tt.is(text) {
				t.Errorf("%s: %q is one", name, text)
			}
		}
	}
}

// A path has a target only if it names one ID of a scheme, and needs no closer look.
func TestTargetOf(t *testing.T) {
	for path, want := range map[string]target{
		"/api/segment/get/order":   {scheme: "segment", key: "order"},
		"/v1/ids/segment/order":    {scheme: "segment", key: "order", api: 1},
		"/v1/ids/segment/a.b":      {scheme: "segment", key: "a.b", api: 1},
		"/v1/ids/segment/order/x":  {},
		"/v1/ids/segment":          {},
		"/v1/ids/nothing/order":    {},
		"/api/segment/get/a.b":     {}, // Java Leaf cuts the name there
		"/api/segment/get/":        {},
		"/api/segment/get/order?n": {},
		"/nothing":                 {},
	} {
		got, ok := targetOf(path)
		if ok != (want.scheme != "") || ok && got != want {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
}

// Headers that the lane does not know as they are go to net/http.
func TestHeaders(t *testing.T) {
	for line, want := range map[string]bool{
		"Host: x":                       true,
		"Host:x":                        true,
		"Host: ":                        false,
		"x-forwarded-proto: https":      true, // the longest name
		"x-forwarded-protocol: https":   false,
		": x":                           false,
		"Accept: */*":                   true,
		"Accept:":                       false,
		"Authorization: Bearer abc":     true,
		"Authorization: Bearer ":        false,
		"Authorization: Bearer a b":     false,
		"Authorization: Bearer  a":      false,
		"Authorization: Basic abc":      false,
		"Connection: keep-alive":        true,
		"Connection: close":             false,
		"User-Agent: curl/8":            true,
		"User-Agent: Mozilla/5.0 (X11)": false,
		"Content-Length: 1":             false,
		"Host : x":                      false,
	} {
		var h headers
		if got := h.add([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	var h headers
	for i, line := range []string{"Via: a", "Via: b", "Host: a", "Host: b"} {
		if got := h.add([]byte(line)); got != (i < 3) {
			t.Errorf("%q as number %d: %v", line, i, got)
		}
	}
}

// The beginning of a request is enough to see that it is for net/http, and no more of it is awaited
// than it takes.
func TestBeginnings(t *testing.T) {
	long := "GET /api/segment/get/order HTTP/1.1\r\nVia: "
	long += strings.Repeat("a", maxHead-1-len(long))
	for _, c := range []struct {
		in     string
		served bool
		want   parseResult
	}{
		{"", false, incomplete},
		{"G", false, incomplete},
		{"GET /api", false, incomplete},
		{"GET api", false, unusual},
		{"POST /", false, unusual},
		{"\n", false, unusual},
		{"\nGET /", false, unusual},
		{"GET /\r\n", false, unusual},
		{"GET / HTTP/1.1\r\n", false, unusual},
		{"x\r\n", false, unusual},
		{"PRI * HTTP/2", false, incomplete},
		{http2.ClientPreface[:len(http2.ClientPreface)-1], false, incomplete},
		{http2.ClientPreface, false, preface},
		{http2.ClientPreface + "more", false, preface},
		{"PRI * HTTP/1", false, unusual},
		{"PRI", true, incomplete}, // what follows a request and has less than four bytes may be nothing
		{"PRI * HTTP/2", true, unusual},
		{http2.ClientPreface, true, unusual},
		{"POS", true, incomplete},
		{"POST", true, unusual},
		{long, false, incomplete},
		{long + "a", false, unusual},
		{long + "aa", true, unusual},
		{long[:maxHead-9] + "\r\nHost: x\r\n\r\n", false, unusual},
	} {
		s := newPair(t, false).lane.newSession(&laneConn{addr: newAddress()})
		s.served = c.served
		if size, got := s.next([]byte(c.in)); got != c.want || size != 0 {
			t.Errorf("%.40q, after a request %v: %v of %d bytes, want %v", c.in, c.served, got, size, c.want)
		}
	}
	whole := []byte(long[:maxHead-len("\r\nHost: x\r\n\r\n")] + "\r\nHost: x\r\n\r\n")
	s := newPair(t, false).lane.newSession(&laneConn{addr: newAddress()})
	if size, got := s.next(append(bytes.Clone(whole), "GET"...)); got != understood || size != maxHead {
		t.Errorf("a request of %d bytes: %v of %d", maxHead, got, size)
	}
	if !bytes.Equal(s.last, whole) {
		t.Error("the request is not remembered")
	}
	if s.next([]byte("POST /")); len(s.last) > 0 {
		t.Error("the request before the last is remembered")
	}
}

// A client that closes its side before a request is whole is net/http's, unless there is none.
func TestHalfClosed(t *testing.T) {
	for rest, passed := range map[string]bool{"G": true, "GET": true, "GET ": false, "GET /": false} {
		for _, served := range []bool{false, true} {
			c := &laneConn{addr: newAddress()}
			s := newPair(t, false).lane.newSession(c)
			s.served = served
			if s.HalfClosed([]byte(rest)); c.given == (served && passed) {
				t.Errorf("%q, after a request %v: handed over %v", rest, served, c.given)
			}
		}
	}
}

// HTTP/2 and HTTP/1.1 go to their own servers.
func TestHeirs(t *testing.T) {
	for input, want := range map[string]string{http2.ClientPreface: "2", "POST / HTTP/1.1\r\n": "1"} {
		lane, got := newPair(t, false).lane, ""
		lane.behind.HTTP1 = func(net.Conn) { got = "1" }
		lane.behind.HTTP2 = func(net.Conn) { got = "2" }
		c := &laneConn{addr: newAddress()}
		lane.newSession(c).Serve([]byte(input), nil)
		if c.heir == nil {
			t.Fatalf("%q is not handed over", input)
		}
		if c.heir(nil); got != want {
			t.Errorf("%q went to the server of HTTP/%s", input, got)
		}
	}
}

// The lane waits while net/http wants the requests of an API.
func TestWants(t *testing.T) {
	for _, wants := range []bool{false, true} {
		lane := newPair(t, false).lane
		lane.behind.Wants = func(v1 bool) bool { return v1 == wants }
		for i, request := range []string{understoodRequests[0], understoodRequests[2]} {
			_, taken, handed := lane.answer([]byte(request), 1<<20)
			if mine := (i == 1) != wants; (taken == len(request)) != mine || handed == mine {
				t.Errorf("net/http wants /v1 %v, the others %v: %q is answered up to %d", wants, !wants, request, taken)
			}
		}
	}
}

// Each answer counts once in the metrics of its API, at once or later.
func TestRequestsAreCounted(t *testing.T) {
	requests := telemetry.NewFrontEnds(nil)
	p := newPair(t, false)
	opts := *p.lane.Options
	opts.Requests = requests
	lane := New(&opts, p.lane.behind)
	wait := strings.Replace(understoodRequests[2], "order", "wait", 1)
	input := understoodRequests[0] + understoodRequests[0] + understoodRequests[5] + understoodRequests[2] + wait
	if _, taken, _ := lane.answer([]byte(input), 1<<20); taken != len(input) {
		t.Fatalf("%d bytes of %d are answered", taken, len(input))
	}
	counted := prometheus.NewRegistry()
	counted.MustRegister(telemetry.NewCollector(telemetry.Sources{Health: func() health.Report { return health.Report{} }, Requests: requests}))
	families, err := counted.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "leaf_request_duration_seconds" {
				got[m.GetLabel()[0].GetValue()] = m.GetHistogram().GetSampleCount()
			}
		}
	}
	if got[frontend.HTTP] != 3 || got[frontend.V1] != 2 {
		t.Errorf("counted %v, want 3 and 2", got)
	}
}

// The IDs of clients without a token count under the limit of their addresses: one address has one
// limit in each of its forms.
func TestAddressesAreLimited(t *testing.T) {
	lane := newPairBehind(t, access.New(access.Options{Limits: access.Limits{Client: access.Limit{Rate: 1, Burst: 1}}})).lane
	for i, c := range []struct {
		addr net.IP
		ours bool
	}{
		{net.IPv4(10, 9, 0, 1).To4(), true}, {net.IPv4(10, 9, 0, 1).To16(), false}, {net.IPv4(10, 9, 0, 2), true}, {net.ParseIP("2001:db8::1"), true},
	} {
		conn := &laneConn{addr: &net.TCPAddr{IP: c.addr, Port: 1}}
		taken, _ := lane.newSession(conn).Serve([]byte(understoodRequests[0]), nil)
		if (taken > 0) != c.ours || conn.given == c.ours {
			t.Errorf("client %d from %v: answered %v, handed over %v", i, c.addr, taken > 0, conn.given)
		}
	}
	if lane.newSession(&laneConn{addr: &net.UnixAddr{Name: "x"}}).identify("") == nil {
		t.Error("a caller without an address is unknown")
	}
}
