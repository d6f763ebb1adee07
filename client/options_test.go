package client_test

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
)

// The generator of a tag takes ranges of it.
func TestTag(t *testing.T) {
	c := connect(t, nil, testleaf.Start(t, testleaf.Options{Store: newStore(t)}))
	g := c.Tag("order")
	got, err := g.Take(t.Context(), []leaf.Range{{Start: 90, End: 91}}, 5)
	if err != nil || len(got) != 2 || got[1] != (leaf.Range{Start: 1, End: 6}) {
		t.Fatalf("got %v, %v", got, err)
	}
	if id, err := g.Next(t.Context()); err != nil || id != 6 {
		t.Errorf("got %d, %v", id, err)
	}
}

// Each way to give a token works; without one, or with another, calls are denied.
func TestTokens(t *testing.T) {
	gate := access.New(access.Options{})
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t), Gate: gate})
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const secret = "a-secret-of-more-than-16-letters"
	testgate.Require(t, gate, access.Options{}, fmt.Sprintf("tokens:\n  - name: app\n    hash: sha256:%x\n    take: [order]\n", sha256.Sum256([]byte(secret))))
	file := filepath.Join(t.TempDir(), "token")
	write(file, secret+"\n")
	for name, tt := range map[string]struct {
		before string
		opts   client.Options
		denied bool
	}{
		"in the URL":    {secret + "@", client.Options{}, false},
		"as an option":  {"", client.Options{Token: secret}, false},
		"in a file":     {"", client.Options{TokenFile: file}, false},
		"none":          {"", client.Options{}, true},
		"another":       {"", client.Options{Token: secret[1:]}, true},
		"a missing one": {"", client.Options{TokenFile: file + "x"}, true},
	} {
		c, err := client.New("http://"+tt.before+server.Host(), &tt.opts)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = c.Ordered("", "order").Next(t.Context()); (err != nil) != tt.denied {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close(t.Context())
	}
}

// A lockedText is a log that a test reads.
type lockedText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// eventually waits until something is true.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not true in a minute that %s", what)
		}
	}
}

// Each option has its effect.
func TestOptions(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	few := connect(t, &client.Options{MaxStock: 1}, server)
	many := connect(t, nil, server)
	brief := connect(t, &client.Options{OutageBudget: time.Nanosecond}, server)
	for range 3000 { // three steps: the stock grows with use
		for _, c := range []*client.Client{few, many, brief} {
			if _, err := c.Next(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
		}
	}
	eventually(t, "the stock grows with use", func() bool { return many.Stats()[0].Stock > 2000 && !brief.Stats()[0].Refilling })
	if stock := few.Stats()[0].Stock; stock > 1000 {
		t.Errorf("MaxStock 1 leads to a stock of %d", stock)
	}
	if stock := brief.Stats()[0].Stock; stock >= 2000 { // a step on top of nine tenths of one
		t.Errorf("an outage budget of nothing leads to a stock of %d", stock)
	}

	log := new(lockedText)
	server.Stop()
	defer server.Resume(t)
	begin := time.Now()
	c := connect(t, &client.Options{Wait: time.Millisecond, Logger: slog.New(slog.NewTextHandler(log, nil))}, server)
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrExhausted) {
		t.Errorf("got %v", err)
	}
	if took := time.Since(begin); took >= time.Second {
		t.Errorf("a Wait of a millisecond took %v, as long as the default", took)
	}
	eventually(t, "the logger learns of a server that is down", func() bool { return strings.Contains(log.String(), "order") })
	if _, err := c.Observe(t.Context(), "order", 7); err == nil || !strings.Contains(err.Error(), `observe 7 of tag "order"`) {
		t.Errorf("got %v", err)
	}
}

// Observe drops this program's lower IDs exactly, and counts them with those of the servers.
func TestObserveDropsExactly(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	c, other := connect(t, nil, server), connect(t, nil, server)
	wantNext(t, c, 1)
	eventually(t, "the program has IDs", func() bool { return c.Stats()[0].Stock > 10 && !c.Stats()[0].Refilling })
	if o, err := c.Observe(t.Context(), "order", 5); err != nil || o.Dropped < 4 {
		t.Errorf("got %+v, %v, want at least the 4 from 2 to 5", o, err)
	}
	wantNext(t, c, 6)
	if o, err := other.Observe(t.Context(), "order", 50_000); err != nil || o.Dropped == 0 { // the server has no IDs below now
		t.Fatalf("got %+v, %v, want what the server dropped", o, err)
	}
	stock := c.Stats()[0].Stock
	if o, err := c.Observe(t.Context(), "order", 50_000); err != nil || o.Dropped != stock {
		t.Errorf("got %+v, %v, want %d dropped", o, err, stock)
	}
}

// Peek says what Next then returns, also at the end of each range in stock.
func TestPeekAtTheEndOfARange(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	c, other := connect(t, nil, server), connect(t, nil, server)
	for range 4 {
		wantPeeked(t, c)
		wantPeeked(t, other) // a range of its own, between those of the first program
		eventually(t, "no call is under way", func() bool { return !c.Stats()[0].Refilling })
		first := c.Stats()[0].Segments[0]
		if _, err := c.Take(t.Context(), "order", nil, int(first.Range.End-first.Next)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the next range is there", func() bool { return c.Stats()[0].Stock > 0 })
		wantPeeked(t, c)
	}
}

func wantPeeked(t *testing.T, c *client.Client) {
	t.Helper()
	peeked, err := c.Peek(t.Context(), "order")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Stats()) > 0 { // else another program may take what the server would give
		wantNext(t, c, peeked)
	} else if _, err := c.Next(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
}

// An https URL uses the given settings of TLS.
func TestTLS(t *testing.T) {
	target, err := url.Parse(testleaf.Start(t, testleaf.Options{Store: newStore(t)}).URL())
	if err != nil {
		t.Fatal(err)
	}
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	front := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport})
	t.Cleanup(front.Close)
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	roots := x509.NewCertPool()
	roots.AddCert(front.Certificate())
	for name, settings := range map[string]*tls.Config{"trusted": {RootCAs: roots}, "unknown": nil} {
		c, err := client.New(front.URL, &client.Options{TLS: settings})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ordered("", "order").Next(t.Context()); (err == nil) != (settings != nil) {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close(t.Context())
	}
}
