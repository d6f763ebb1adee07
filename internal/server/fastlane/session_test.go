package fastlane

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/segment"
)

// The answer of one session stays while another session answers.
func TestSessionsShareNoBytes(t *testing.T) {
	lane := newPair(t, false).lane
	want := map[string]string{"order": "5111", "shop": "4115"}
	answers := map[string][]byte{}
	for key := range want {
		request := "GET /api/segment/get/" + key + " HTTP/1.1\r\nHost: x\r\n\r\n"
		_, answers[key] = lane.newSession(&laneConn{addr: newAddress()}).Serve([]byte(request), nil)
	}
	for key, id := range want {
		if !bytes.HasSuffix(answers[key], []byte("\r\n\r\n"+id)) {
			t.Errorf("%s: %q, want %s at its end", key, answers[key], id)
		}
	}
}

// A second batch has no ID of the first one.
func TestSecondBatch(t *testing.T) {
	p := newPair(t, false)
	request := func(query string) string {
		return "GET /v1/ids/segment/order?" + query + " HTTP/1.1\r\nHost: x\r\n\r\n"
	}
	input := request("n=3") + request("n=2") + request("n=4&ranges=1")
	if _, taken, _ := p.lane.answer([]byte(input), len(input)); taken != len(input) {
		t.Errorf("the lane answers %d bytes of %d", taken, len(input))
	}
	p.check(t, []byte(input), len(input))
}

// Each second has its own date.
func TestDate(t *testing.T) {
	lane, begun := newPair(t, false).lane, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, now := range []time.Time{begun, begun.Add(time.Second - 1), begun.Add(time.Second)} {
		h := lane.headsAt(now)
		for _, text := range [][]byte{h.text[0], h.text[1], h.batch} {
			if want := "Date: " + now.Format(dateFormat) + "\r\n"; !bytes.Contains(text, []byte(want)) {
				t.Errorf("at %v: %q", now, text)
			}
		}
	}
}

// A tag without a stock waits for its store. Only net/http tells the period, and Java Leaf's route has
// no place for it.
func TestPeriods(t *testing.T) {
	store := memory.New().Store()
	daily := segment.Tag{Name: "invoice", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionPeriod: "day"}}
	if err := store.Create(t.Context(), daily); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, nil)
	defer set.Close(t.Context())
	opts := &frontend.Options{IDs: issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil), Access: access.New(access.Options{Local: true})}
	lane := New(opts, Behind{Wants: func(bool) bool { return false }})
	for path, ours := range map[string]bool{"/api/segment/get/invoice": true, "/v1/ids/segment/invoice": false, "/v1/ids/segment/invoice?n=2": false} {
		request := []byte("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n")
		if _, taken, handed := lane.answer(request, len(request)); (taken == len(request)) != ours || handed == ours {
			t.Errorf("%s: answered up to %d, handed over %v", path, taken, handed)
		}
	}
}

// The lane knows a client by its certificate, and leaves refusals to net/http.
func TestClientCertificate(t *testing.T) {
	gate := testgate.New(t, access.Options{Local: true}, "tokens: [{name: shop, certificate: shop.example, take: [order]}]")
	lane := newPairBehind(t, gate).lane
	for name, given := range map[string]bool{"shop.example": false, "other.example": true} {
		c := &laneConn{addr: newAddress(), tls: &tls.ConnectionState{
			VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: name}}}},
		}}
		_, out := lane.newSession(c).Serve([]byte("GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\n\r\n"), nil)
		if c.given != given || given == (len(out) > 0) {
			t.Errorf("%s: handed over: %t, answered %q", name, c.given, out)
		}
	}
}

// Over TLS the handshake alone chooses HTTP/2: the preface is then a bad request of HTTP/1.
func TestPrefaceOverTLS(t *testing.T) {
	lane := newPair(t, false).lane
	for _, state := range []*tls.ConnectionState{nil, {}} {
		two := false
		lane.behind.HTTP1, lane.behind.HTTP2 = func(net.Conn) {}, func(net.Conn) { two = true }
		c := &laneConn{addr: newAddress(), tls: state}
		lane.newSession(c).Serve([]byte(http2.ClientPreface), nil)
		if c.heir(nil); two != (state == nil) {
			t.Errorf("with TLS %t: HTTP/2 %t", state != nil, two)
		}
	}
}
