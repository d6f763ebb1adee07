package client_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	rpc "connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
)

// A client without a token sends no credentials.
func TestNoToken(t *testing.T) {
	var mu sync.Mutex
	var headers []http.Header
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		headers = append(headers, r.Header)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer front.Close()
	for want, o := range map[string]*client.Options{"": nil, "Bearer secret": {Token: "secret"}} {
		c, err := client.New(front.URL, o)
		if err != nil {
			t.Fatal(err)
		}
		headers = nil
		if _, err := c.Ordered("", "order").Next(t.Context()); err == nil {
			t.Error("an ID of a server that has none")
		}
		mu.Lock()
		for _, h := range headers {
			if got := h.Get("Authorization"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		if len(headers) == 0 {
			t.Error("no call")
		}
		mu.Unlock()
		_ = c.Close(t.Context())
	}
}

// A call asks for the scheme that it names.
func TestIssueOfAScheme(t *testing.T) {
	c := connect(t, nil, testleaf.Start(t, testleaf.Options{Store: newStore(t)}))
	for scheme, want := range map[string][2]int{"": {1, 0}, "segment": {1, 0}, "uuid": {0, 2}, "none": {}} {
		got, err := c.Issue(t.Context(), client.Request{Scheme: scheme, Key: "order", Count: 2})
		if (err == nil) != (want != [2]int{}) || len(got.Ranges) != want[0] || len(got.Texts) != want[1] || want[0] > 0 && got.Ranges[0].Len() != 2 {
			t.Errorf("%q: %+v, %v", scheme, got, err)
		}
	}
}

// Without hedging a silent server is left only at the end of its time: the call to it is not broken off.
func TestNoHedge(t *testing.T) {
	store := newStore(t)
	silent, other := testleaf.Start(t, testleaf.Options{Store: store}), testleaf.Start(t, testleaf.Options{Store: store})
	silent.Hold()
	defer silent.Release()
	for silent.Calls("Take") == 0 { // clients begin with either
		var mu sync.Mutex
		var ended error
		c := connect(t, &client.Options{Hedge: -1, CallTimeout: time.Second, Wait: time.Minute, OnCall: func(call client.Call) {
			mu.Lock()
			defer mu.Unlock()
			if call.Server == silent.Host() {
				ended = call.Err
			}
		}}, silent, other)
		if _, err := c.Ordered("", "order").Next(t.Context()); err != nil {
			t.Error(err)
		}
		mu.Lock()
		if silent.Calls("Take") > 0 && rpc.CodeOf(ended) != rpc.CodeDeadlineExceeded {
			t.Errorf("the call to the silent server ended with %v", ended)
		}
		mu.Unlock()
	}
}

// A report that reached no server drops nothing of this program's stock.
func TestObserveWithoutAServer(t *testing.T) {
	server := testleaf.Start(t, testleaf.Options{Store: newStore(t)})
	c := connect(t, nil, server)
	wantNext(t, c, 1)
	eventually(t, "the program has IDs", func() bool { return c.Stats()[0].Stock > 10 && !c.Stats()[0].Refilling })
	server.Stop()
	defer server.Resume(t)
	if o, err := c.Observe(t.Context(), "order", 5); err == nil || errors.Is(err, leaf.ErrUnknownTag) || o != (client.Observed{}) {
		t.Errorf("got %+v, %v", o, err)
	}
	wantNext(t, c, 2)
}
