package access_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/internal/server/access"
)

var addr = netip.MustParseAddr("192.0.2.1")

// write writes a tokens file and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// gate returns a Gate with the tokens of a file.
func gate(t *testing.T, opts access.Options, file string) *access.Gate {
	t.Helper()
	g := access.New(opts)
	if err := g.Reload(write(t, file)); err != nil {
		t.Fatal(err)
	}
	return g
}

// caller returns the caller with a valid token.
func caller(t *testing.T, g *access.Gate, token string) *access.Caller {
	t.Helper()
	c, err := g.Caller(access.Credentials{Token: token, Addr: addr})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func entry(token, rest string) string {
	return fmt.Sprintf("tokens: [{name: t, hash: %q, %s}]", access.HashToken(token), rest)
}

func want(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// Without credentials, IDs are open. Other machines change nothing, and read only if that is
// public.
func TestWithoutTokens(t *testing.T) {
	no := access.ErrNoCredentials
	for _, tt := range []struct {
		name        string
		gate        *access.Gate
		read, admin error
	}{
		{"nil", nil, nil, no},
		{"local", access.New(access.Options{Local: true}), nil, nil},
		{"other machines", access.New(access.Options{}), no, no},
		{"public", access.New(access.Options{PublicRead: true}), nil, no},
	} {
		if !tt.gate.Open() {
			t.Errorf("%s: not open", tt.name)
		}
		c, err := tt.gate.Caller(access.Credentials{Token: "any", Addr: addr})
		if err != nil {
			t.Fatal(err)
		}
		want(t, tt.name+" take", c.Take("segment", "order", 1), nil)
		want(t, tt.name+" read", c.May(access.Read), tt.read)
		want(t, tt.name+" admin", c.May(access.Admin), tt.admin)
		want(t, tt.name+" worker", c.May(access.Worker), tt.admin)
		want(t, tt.name+" decode", c.May(access.Take|access.Read), nil)
	}
}

// With credentials nothing goes without a token, on this machine neither.
func TestWithoutOne(t *testing.T) {
	g := gate(t, access.Options{Local: true}, entry(access.NewToken(), `take: ["*"]`))
	if g.Open() {
		t.Error("the gate is open")
	}
	for _, token := range []string{"", "x", access.NewToken()} {
		_, err := g.Caller(access.Credentials{Token: token, Addr: addr})
		want(t, "token "+token, err, access.ErrUnauthenticated)
	}
	var none *access.Caller
	want(t, "nil take", none.Take("segment", "order", 1), access.ErrUnauthenticated)
	want(t, "nil read", none.May(access.Read), access.ErrUnauthenticated)
}

func TestPublicReadBesideTokens(t *testing.T) {
	g := gate(t, access.Options{PublicRead: true}, entry(access.NewToken(), `take: ["*"]`))
	c := caller(t, g, "")
	want(t, "read", c.May(access.Read), nil)
	want(t, "take", c.Take("segment", "order", 1), access.ErrUnauthenticated)
	want(t, "admin", c.May(access.Admin), access.ErrUnauthenticated)
	_, err := g.Caller(access.Credentials{Token: access.NewToken(), Addr: addr})
	want(t, "a wrong token", err, access.ErrUnauthenticated)
}

func TestScopes(t *testing.T) {
	for _, tt := range []struct {
		rest, scheme, key string
		want              error
	}{
		{`take: ["order.*"]`, "segment", "order.a", nil},
		{`take: ["order.*"]`, "", "order.a/b\nc", nil},
		{`take: ["order.*"]`, "uid", "order.", nil},
		{`take: ["order.*"]`, "segment", "order", access.ErrForbidden},
		{`take: ["order.*"]`, "segment", "orderxa", access.ErrForbidden},
		{`take: ["order.*"]`, "segment", "my.order.a", access.ErrForbidden},
		{`take: ["order.*"]`, "segment", "", access.ErrForbidden},
		{`take: ["a*b*c"]`, "segment", "abc", nil},
		{`take: ["a*b*c"]`, "segment", "axbybzc", nil},
		{`take: ["a*b*c"]`, "segment", "acb", access.ErrForbidden},
		{`take: ["ab*bc"]`, "segment", "abc", access.ErrForbidden},
		{`take: ["**"]`, "segment", "a", nil},
		{`take: [!!binary /yo=]`, "segment", "\xff.a", nil}, // not valid UTF-8
		{`take: [a, b]`, "segment", "b", nil},
		{`take: [a, b]`, "segment", "bb", access.ErrForbidden},
		{`take: ["*"], schemes: [segment]`, "", "a", nil},
		{`take: ["*"], schemes: [uid, uuid]`, "uuid", "v4", nil},
		{`take: ["*"], schemes: [uid]`, "", "a", access.ErrForbidden},
		{`rights: [read, admin, worker]`, "segment", "a", access.ErrForbidden},
	} {
		token := access.NewToken()
		c := caller(t, gate(t, access.Options{}, entry(token, tt.rest)), token)
		for _, n := range []int64{0, 1} {
			want(t, fmt.Sprint(tt.rest, " ", tt.scheme, " ", tt.key), c.Take(tt.scheme, tt.key, n), tt.want)
		}
	}
}

func TestLeaseByPool(t *testing.T) {
	for _, tt := range []struct {
		rest, pool string
		want       error
		worker     error // to claim worker IDs for a server
	}{
		{`rights: [worker]`, "orders", nil, nil},
		{`rights: [worker], pools: ["order*"]`, "orders", nil, access.ErrForbidden},
		{`rights: [worker], pools: ["order*", b]`, "invoices", access.ErrForbidden, access.ErrForbidden},
		{`rights: [admin]`, "orders", access.ErrForbidden, access.ErrForbidden},
		{`take: ["*"]`, "orders", access.ErrForbidden, access.ErrForbidden},
	} {
		token := access.NewToken()
		c := caller(t, gate(t, access.Options{}, entry(token, tt.rest)), token)
		want(t, tt.rest+" "+tt.pool, c.Lease(tt.pool), tt.want)
		want(t, tt.rest+" as a server", c.May(access.Worker), tt.worker)
	}
}

func TestRights(t *testing.T) {
	for rest, may := range map[string]access.Right{
		`take: [a]`: access.Take, `rights: [read]`: access.Read, `rights: [admin]`: access.Admin | access.Read,
		`rights: [worker]`: access.Worker, `take: [a], rights: [worker, read]`: access.Take | access.Read | access.Worker,
	} {
		token := access.NewToken()
		c := caller(t, gate(t, access.Options{}, entry(token, rest)), token)
		for _, right := range []access.Right{access.Take, access.Read, access.Admin, access.Worker} {
			if err := c.May(right); (err == nil) != (may&right != 0) || err != nil && !errors.Is(err, access.ErrForbidden) {
				t.Errorf("%s: right %d: %v", rest, right, err)
			}
		}
	}
}

func TestCertificates(t *testing.T) {
	g := gate(t, access.Options{}, `tokens: [{name: t, certificate: shop.example, take: ["*"]}]`)
	for name, tt := range map[string]struct {
		certificate *x509.Certificate
		want        error
	}{
		"none":        {nil, access.ErrUnauthenticated},
		"common name": {&x509.Certificate{Subject: pkix.Name{CommonName: "shop.example"}}, nil},
		"dns name":    {&x509.Certificate{Subject: pkix.Name{CommonName: "x"}, DNSNames: []string{"y", "shop.example"}}, nil},
		"another":     {&x509.Certificate{Subject: pkix.Name{CommonName: "x"}}, access.ErrUnauthenticated},
		"nameless":    {new(x509.Certificate), access.ErrUnauthenticated},
	} {
		c, err := g.Caller(access.Credentials{Certificate: tt.certificate, Addr: addr})
		want(t, name, err, tt.want)
		if err == nil {
			want(t, name, c.Take("segment", "order", 1), nil)
		}
	}
	good := &x509.Certificate{Subject: pkix.Name{CommonName: "shop.example"}}
	_, err := g.Caller(access.Credentials{Token: "wrong", Certificate: good, Addr: addr})
	want(t, "a wrong token beside a good certificate", err, access.ErrUnauthenticated)
}

// A caller of an open gate has shown credentials, or has an address, that count after a change of the
// rules.
func TestCallerOutlivesAReload(t *testing.T) {
	g, token := access.New(access.Options{}), access.NewToken()
	certificate := &x509.Certificate{Subject: pkix.Name{CommonName: "shop.example"}}
	callers := make(map[string]*access.Caller)
	for name, c := range map[string]access.Credentials{
		"token": {Token: token, Addr: addr}, "certificate": {Certificate: certificate, Addr: addr}, "wrong token": {Token: access.NewToken(), Addr: addr},
		"first address": {Addr: addr}, "second address": {Addr: netip.MustParseAddr("192.0.2.2")},
	} {
		var err error
		if callers[name], err = g.Caller(c); err != nil {
			t.Fatal(err)
		}
	}
	limited, err := g.Prepare(false, access.Limits{Client: access.Limit{Quota: 1}}, "")
	if err != nil {
		t.Fatal(err)
	}
	limited()
	for _, name := range []string{"first address", "second address"} {
		want(t, name+", within the limit", callers[name].Take("segment", "order", 1), nil)
		want(t, name+", over the limit", callers[name].Take("segment", "order", 1), access.ErrLimit)
	}
	if err := g.Reload(write(t, entry(token, `take: ["*"]`)+"\n")); err != nil {
		t.Fatal(err)
	}
	want(t, "token", callers["token"].Take("segment", "order", 1), nil)
	for _, name := range []string{"certificate", "wrong token", "first address"} {
		want(t, name, callers[name].Take("segment", "order", 1), access.ErrUnauthenticated)
	}
	if err := g.Reload(write(t, `tokens: [{name: t, certificate: shop.example, take: ["*"]}]`)); err != nil {
		t.Fatal(err)
	}
	want(t, "certificate", callers["certificate"].Take("segment", "order", 1), nil)
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		token := access.NewToken()
		g := gate(t, access.Options{}, entry(token, "take: [a], expires: "+time.Now().Add(time.Hour).Format(time.RFC3339)))
		c := caller(t, g, token)
		time.Sleep(time.Hour - time.Second)
		want(t, "before", c.Take("", "a", 1), nil)
		time.Sleep(time.Second)
		want(t, "after", c.Take("", "a", 1), access.ErrUnauthenticated)
		_, err := g.Caller(access.Credentials{Token: token})
		want(t, "a new connection", err, access.ErrUnauthenticated)
	})
}

// An open connection follows changes of the rules.
func TestReload(t *testing.T) {
	first, second := access.NewToken(), access.NewToken()
	g := gate(t, access.Options{}, entry(first, `take: [a]`))
	c := caller(t, g, first)
	want(t, "before", c.Take("", "a", 1), nil)
	if err := g.Reload(write(t, "tokens: [{name: t, hsh: x}]")); err == nil {
		t.Error("a broken file was read")
	}
	want(t, "after a broken file", c.Take("", "a", 1), nil)
	if err := g.Reload(write(t, entry(second, `take: [a]`))); err != nil {
		t.Fatal(err)
	}
	want(t, "withdrawn", c.Take("", "a", 1), access.ErrUnauthenticated)
	want(t, "the new one", caller(t, g, second).Take("", "a", 1), nil)
	if g.Tokens() != 1 {
		t.Errorf("%d tokens are known, want 1", g.Tokens())
	}
}

// Nothing that a client sent is logged, and a flood of wrong tokens is cut short.
func TestAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		g := gate(t, access.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, entry(access.NewToken(), "take: [a]"))
		token := access.NewToken()
		limited := 0
		for range 1000 {
			_, err := g.Caller(access.Credentials{Token: token, Addr: addr})
			if limit, ok := errors.AsType[*access.LimitError](err); ok && limit.RetryAfter == time.Second {
				limited++
			} else {
				want(t, "an attempt", err, access.ErrUnauthenticated)
			}
		}
		if limited != 980 {
			t.Errorf("%d of 1000 attempts were put off, want 980", limited)
		}
		_, err := g.Caller(access.Credentials{Token: token, Addr: netip.MustParseAddr("192.0.2.2")})
		want(t, "another address", err, access.ErrUnauthenticated)
		time.Sleep(time.Second)
		_, err = g.Caller(access.Credentials{Addr: addr})
		want(t, "without a token, which is no attempt", err, access.ErrUnauthenticated)
		_, err = g.Caller(access.Credentials{Token: token, Addr: addr})
		want(t, "a second later", err, access.ErrUnauthenticated)
		if got := log.String(); strings.Count(got, "\n") != 21 || strings.Contains(got, token) || !strings.Contains(got, "address=192.0.2.1") ||
			!strings.Contains(got, `reason="unknown token" not_logged=981`) {
			t.Errorf("the log:\n%s", got)
		}
	})
}
