package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/relay"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
)

// A switchboard is one address that leads to one server after another.
type switchboard struct {
	url    string
	target atomic.Pointer[url.URL]
}

func newSwitchboard(t *testing.T, to *testleaf.Server) *switchboard {
	t.Helper()
	b := new(switchboard)
	b.lead(t, to)
	transport := new(http.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	front := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(b.target.Load()) }, Transport: transport,
	})
	t.Cleanup(front.Close)
	b.url = front.URL
	return b
}

func (b *switchboard) lead(t *testing.T, to *testleaf.Server) {
	t.Helper()
	target, err := url.Parse(to.URL())
	if err != nil {
		t.Fatal(err)
	}
	b.target.Store(target)
}

func newClient(t *testing.T, url string) *client.Client {
	t.Helper()
	c, err := client.New(url, &client.Options{MaxStock: 2000, Wait: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(t.Context()) })
	return c
}

// takeAll takes IDs until a call fails, at most n batches of 100.
func takeAll(t *testing.T, c *client.Client, ranges *drivertest.Ranges, n int) error {
	t.Helper()
	for range n {
		got, err := c.Take(t.Context(), "order", nil, 100)
		ranges.Add(got...)
		if err := ranges.Check(); err != nil {
			t.Fatal(err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func server(t *testing.T) *testleaf.Server {
	t.Helper()
	return testleaf.Start(t, testleaf.Options{Store: newStore(t)})
}

// The server behind the client is emptied: the stock is issued, then calls fail.
func TestEmptiedServer(t *testing.T) {
	board := newSwitchboard(t, server(t))
	c := newClient(t, board.url)
	var ranges drivertest.Ranges
	if err := takeAll(t, c, &ranges, 60); err != nil {
		t.Fatal(err)
	}
	board.lead(t, server(t))
	if err := takeAll(t, c, &ranges, 100); !errors.Is(err, segment.ErrForeignStore) {
		t.Fatalf("got %v behind an emptied server", err)
	}
}

// Calls without a stock notice it, too.
func TestOrderedAtAnEmptiedServer(t *testing.T) {
	board := newSwitchboard(t, server(t))
	ids := newClient(t, board.url).Ordered("", "order")
	if _, err := ids.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	board.lead(t, server(t))
	if _, err := ids.Next(t.Context()); !errors.Is(err, segment.ErrForeignStore) {
		t.Errorf("got %v behind an emptied server", err)
	}
}

// The server behind a relay is emptied: the relay and its clients issue their stock. A client
// that comes later believes the relay no more than the first one does.
func TestEmptiedServerBehindARelay(t *testing.T) {
	board := newSwitchboard(t, server(t))
	db, err := relay.Open([]string{board.url}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	front := testleaf.Start(t, testleaf.Options{
		Store: db.Store(), Route: db.Route, Segment: segment.SetOptions{Options: segment.Options{MaxStock: 2000, Wait: time.Second}},
	})
	c := newClient(t, front.URL())
	var ranges drivertest.Ranges
	if err := takeAll(t, c, &ranges, 60); err != nil {
		t.Fatal(err)
	}
	board.lead(t, server(t))
	if err := takeAll(t, c, &ranges, 100); err == nil {
		t.Fatal("a relay behind an emptied server goes on")
	}
	if err := takeAll(t, newClient(t, front.URL()), &ranges, 10); err == nil {
		t.Fatal("a relay behind an emptied server serves a new client")
	}
}

// A relay restarts over another server: its clients notice by the passed-on identity.
func TestRelayPassesTheIdentityOn(t *testing.T) {
	over := func() *testleaf.Server {
		db, err := relay.Open([]string{server(t).URL()}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return testleaf.Start(t, testleaf.Options{Store: db.Store(), Route: db.Route})
	}
	board := newSwitchboard(t, over())
	c := newClient(t, board.url)
	var ranges drivertest.Ranges
	if err := takeAll(t, c, &ranges, 60); err != nil {
		t.Fatal(err)
	}
	board.lead(t, over())
	if err := takeAll(t, c, &ranges, 100); !errors.Is(err, segment.ErrForeignStore) {
		t.Fatalf("got %v behind another relay", err)
	}
}

// One URL names servers of different stores: only those of the first one's are used, and it is
// asked again once it is back.
func TestServersOfTwoStores(t *testing.T) {
	servers := []*testleaf.Server{server(t), server(t)}
	c := newClient(t, servers[0].URL()+","+servers[1].Host())
	var ranges drivertest.Ranges
	if err := takeAll(t, c, &ranges, 60); err != nil {
		t.Fatal(err)
	}
	used := servers[0]
	if len(used.Set.Stats()) == 0 {
		used = servers[1]
	}
	used.Stop()
	if err := takeAll(t, c, &ranges, 100); err == nil {
		t.Fatal("IDs of two stores")
	}
	used.Resume(t)
	for deadline := time.Now().Add(30 * time.Second); ; {
		err := takeAll(t, c, &ranges, 1)
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("with the server back: %v", err)
		}
	}
}
