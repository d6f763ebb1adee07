package v1api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/v1api"
	"github.com/leaf-id/leaf/snowflake"
)

// A source issues 1, 2, 3, … under every key, or fails with err, and keeps the last key.
type source struct {
	next atomic.Int64
	err  error
	key  atomic.Value // string
}

func (s *source) Next(_ context.Context, key string) (int64, error) {
	s.key.Store(key)
	if s.err != nil {
		return 0, s.err
	}
	return s.next.Add(1), nil
}

// Take gives two ranges where it can.
func (s *source) Take(ctx context.Context, key string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	r, err := s.TakeContiguous(ctx, key, n)
	if err != nil || n == 1 {
		return append(dst, r), err
	}
	mid := r.Start + int64(n)/2
	return append(dst, leaf.Range{Start: r.Start, End: mid}, leaf.Range{Start: mid, End: r.End}), nil
}

func (s *source) TakeContiguous(_ context.Context, key string, n int) (leaf.Range, error) {
	s.key.Store(key)
	if s.err != nil {
		return leaf.Range{}, s.err
	}
	end := s.next.Add(int64(n)) + 1
	return leaf.Range{Start: end - int64(n), End: end}, nil
}

func (s *source) Check(_ context.Context, key string) error {
	s.key.Store(key)
	return s.err
}

func newHandler() (http.Handler, *source) {
	s := new(source)
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(s)}, &issuer.Options{MaxBatch: 1000, MaxRange: 5000})
	opts := &frontend.Options{IDs: ids, Access: access.New(access.Options{Local: true})}
	return v1api.New(opts, http.NotFoundHandler()), s
}

func ask(h http.Handler, method, target string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w
}

func TestIDs(t *testing.T) {
	h, _ := newHandler()
	tests := []struct{ target, contentType, body string }{
		{"/v1/ids/segment/order", "application/json", `{"ids":["1"]}`},
		{"/v1/ids/segment/order?n=1", "application/json", `{"ids":["2"]}`},
		{"/v1/ids/segment/order?n=3&format=json", "application/json", `{"ids":["3","4","5"]}`},
		{"/v1/ids/segment/order?format=text", "text/plain; charset=utf-8", "6"},
		{"/v1/ids/segment/order?format=text&n=2", "text/plain; charset=utf-8", "7\n8"},
		{"/v1/ids/segment/order?n=4&ranges=1", "application/json", `{"ranges":[{"start":"9","count":"2"},{"start":"11","count":"2"}]}`},
		{"/v1/ids/segment/order?n=5000&ranges=true&contiguous=1", "application/json", `{"ranges":[{"start":"13","count":"5000"}]}`},
		{"/v1/ids/segment/order?ranges=1", "application/json", `{"ranges":[{"start":"5013","count":"1"}]}`},
		{"/v1/ids/segment/order?n=2&contiguous=1&ranges=0", "application/json", `{"ids":["5014","5015"]}`},
		{"/v1/ids/segment/order?contiguous=false", "application/json", `{"ids":["5016"]}`},
	}
	for _, tt := range tests {
		w := ask(h, http.MethodGet, tt.target)
		got := []string{fmt.Sprint(w.Code), w.Header().Get("Content-Type"), w.Header().Get("Cache-Control"), w.Body.String()}
		if diff := cmp.Diff([]string{"200", tt.contentType, "no-store", tt.body + "\n"}, got); diff != "" {
			t.Errorf("%s: %s", tt.target, diff)
		}
	}
	if w := ask(h, http.MethodPost, "/v1/ids/segment/order"); w.Body.String() != `{"ids":["5017"]}`+"\n" {
		t.Errorf("POST: %s", w.Body)
	}
	for _, chunked := range []bool{false, true} { // takes nothing: the next ID is 5018
		r := httptest.NewRequest(http.MethodPost, "/v1/ids/segment/order", strings.NewReader(`{"n":3}`))
		if chunked {
			r.ContentLength = -1
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "?n=3") {
			t.Errorf("POST with a body: %d, %s", w.Code, w.Body)
		}
	}
	var batch struct{ IDs []string }
	if err := json.Unmarshal(ask(h, http.MethodGet, "/v1/ids/segment/order?n=1000").Body.Bytes(), &batch); err != nil || len(batch.IDs) != 1000 {
		t.Errorf("%d IDs: %v", len(batch.IDs), err)
	}
}

func TestUUIDs(t *testing.T) {
	h, _ := newHandler()
	var batch struct{ IDs []string }
	w := ask(h, http.MethodGet, "/v1/ids/uuid/v4?n=2")
	if err := json.Unmarshal(w.Body.Bytes(), &batch); err != nil || len(batch.IDs) != 2 || len(batch.IDs[0]) != 36 {
		t.Errorf("%s: %v", w.Body, err)
	}
}

func TestBadRequests(t *testing.T) {
	h, s := newHandler()
	tests := []struct {
		method, target string
		status         int
		reason, says   string
	}{
		{"GET", "/v1/ids/segment/order?n=0", 400, "INVALID_ARGUMENT", "1 to 1000"},
		{"GET", "/v1/ids/segment/order?n=1001", 400, "INVALID_ARGUMENT", "1 to 1000"},
		{"GET", "/v1/ids/segment/order?n=5001&ranges=1", 400, "INVALID_ARGUMENT", "1 to 5000"},
		{"GET", "/v1/ids/segment/order?n=-1", 400, "INVALID_ARGUMENT", "1 to 1000"},
		{"GET", "/v1/ids/segment/order?n=", 400, "INVALID_ARGUMENT", "1 to 1000"},
		{"GET", "/v1/ids/segment/order?n=99999999999999999999", 400, "INVALID_ARGUMENT", "1 to 1000"},
		{"GET", "/v1/ids/segment/order?n=1&n=1", 400, "INVALID_ARGUMENT", "2 times"},
		{"GET", "/v1/ids/segment/order?count=1", 400, "INVALID_ARGUMENT", "n, format, ranges, contiguous"},
		{"GET", "/v1/ids/segment/order?n=%zz", 400, "INVALID_ARGUMENT", "malformed"},
		{"GET", "/v1/ids/segment/order?format=xml", 400, "INVALID_ARGUMENT", "json or text"},
		{"GET", "/v1/ids/segment/order?ranges=yes", 400, "INVALID_ARGUMENT", "true"},
		{"GET", "/v1/ids/segment/order?ranges=", 400, "INVALID_ARGUMENT", "true"},
		{"GET", "/v1/ids/segment/order?ranges=1&format=text", 400, "INVALID_ARGUMENT", "JSON only"},
		{"GET", "/v1/ids/uuid/v7?ranges=1", 400, "INVALID_ARGUMENT", "no ranges"},
		{"GET", "/v1/ids/uuid/v7?contiguous=1", 400, "INVALID_ARGUMENT", "no ranges"},
		{"GET", "/v1/ids/segment/%00", 400, "BAD_KEY", ""},
		{"GET", "/v1/ids/snowflake/order", 501, "SCHEME_DISABLED", "snowflake"},
		{"GET", "/v1/ids/segments/order", 404, "UNKNOWN_SCHEME", "segment, snowflake"},
		{"GET", "/v1/ids/segment/order/", 404, "NO_ROUTE", ""},
		{"GET", "/v1/ids/segment/", 404, "NO_ROUTE", ""},
		{"GET", "/v1/ids/segment", 404, "NO_ROUTE", ""},
		{"GET", "/v1/ids//order", 404, "UNKNOWN_SCHEME", ""},
		{"GET", "/v1/", 404, "NO_ROUTE", "/v1/ids/{scheme}/{key}"},
		{"GET", "/v1/decode/", 404, "NO_ROUTE", ""},
		{"PUT", "/v1/ids/segment/order", 405, "METHOD_NOT_ALLOWED", "GET, HEAD, POST, OPTIONS"},
		{"TRACE", "/v1/ids/segment/order", 405, "METHOD_NOT_ALLOWED", ""},
		{"POST", "/v1/decode/1", 405, "METHOD_NOT_ALLOWED", "GET, HEAD, OPTIONS"},
		{"GET", "/v1/decode/x", 400, "INVALID_ARGUMENT", "whole number"},
		{"GET", "/v1/decode/-1", 400, "INVALID_ARGUMENT", ""},
		{"GET", "/v1/decode/9223372036854775808", 400, "INVALID_ARGUMENT", "2^63"},
		{"GET", "/v1/decode/1?layout=nope", 400, "INVALID_ARGUMENT", "js53"},
		{"GET", "/v1/decode/1?n=1", 400, "INVALID_ARGUMENT", "layout"},
	}
	for _, tt := range tests {
		w := ask(h, tt.method, tt.target)
		p := problem(t, w)
		if w.Code != tt.status || p.Status != tt.status || p.Reason != tt.reason || !strings.Contains(p.Detail, tt.says) {
			t.Errorf("%s %s: %d %+v, want %d %s with %q", tt.method, tt.target, w.Code, p, tt.status, tt.reason, tt.says)
		}
		if w.Code == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", tt.method, tt.target)
		}
	}
	if n := s.next.Load(); n != 0 {
		t.Errorf("%d IDs were consumed", n)
	}
}

func problem(t *testing.T, w *httptest.ResponseRecorder) frontend.Problem {
	t.Helper()
	var p frontend.Problem
	dec := json.NewDecoder(w.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v: %v", w.Code, w.Header(), err)
	}
	if p.Title == "" || !strings.HasSuffix(p.Type, "#"+strings.ToLower(p.Reason)) {
		t.Errorf("%+v", p)
	}
	return p
}

func TestErrors(t *testing.T) {
	h, s := newHandler()
	tests := []struct {
		err           error
		status        int
		reason, after string
	}{
		{leaf.ErrUnknownTag, 404, "UNKNOWN_TAG", ""},
		{leaf.ErrExhausted, 503, "EXHAUSTED", "1"},
		{leaf.ErrNoLease, 503, "NO_WORKER_ID", "1"},
		{leaf.ErrNotContiguous, 400, "NOT_CONTIGUOUS", ""},
		{leaf.ErrOverflow, 500, "OVERFLOW", ""},
		{&access.LimitError{What: "100 IDs a second", RetryAfter: 2 * time.Second}, 429, "RATE_LIMITED", "2"},
		{access.ErrUnauthenticated, 401, "UNAUTHENTICATED", ""},
		{&leaf.StoreError{Err: errors.New("dial tcp 192.0.2.1: refused")}, 503, "STORE_UNAVAILABLE", "1"},
	}
	for _, tt := range tests {
		for _, target := range []string{"", "?n=2", "?n=2&contiguous=1", "?n=2&ranges=1"} {
			s.err = fmt.Errorf("wrapped: %w", tt.err)
			w := ask(h, http.MethodGet, "/v1/ids/segment/order"+target)
			if p := problem(t, w); w.Code != tt.status || p.Reason != tt.reason || w.Header().Get("Retry-After") != tt.after {
				t.Errorf("%v: %d %+v %v", tt.err, w.Code, p, w.Header())
			} else if strings.Contains(p.Detail, "192.0.2.1") {
				t.Errorf("the error names the store: %s", p.Detail)
			}
			if challenge := w.Header().Get("WWW-Authenticate"); (challenge != "") != (tt.status == 401) {
				t.Errorf("%v: WWW-Authenticate %q", tt.err, challenge)
			}
		}
	}
}

func TestHeadAndOptions(t *testing.T) {
	h, s := newHandler()
	if w := ask(h, http.MethodHead, "/v1/ids/segment/order?n=5"); w.Code != 200 || w.Header().Get("Content-Type") != "application/json" || w.Body.Len() > 0 {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	for _, target := range []string{"/v1/ids/segment/order", "/v1/decode/1"} {
		if w := ask(h, http.MethodOptions, target); w.Code != 204 || !strings.HasPrefix(w.Header().Get("Allow"), "GET, HEAD") {
			t.Errorf("%s: %d %v", target, w.Code, w.Header())
		}
	}
	s.err = leaf.ErrUnknownTag
	if w := ask(h, http.MethodHead, "/v1/ids/segment/order"); w.Code != 404 {
		t.Errorf("%d", w.Code)
	}
	if s.next.Load() != 0 {
		t.Error("IDs were consumed")
	}
}

func TestKeys(t *testing.T) {
	for path, want := range map[string]string{
		"order":            "order",
		"a%2Fb":            "a/b",
		"order.v1;x=1":     "order.v1;x=1",
		"%E8%AE%A2":        "订",
		"a+b":              "a+b",
		"%2E%2E":           "..",
		"a%25b":            "a%b",
		"order%20":         "order ",
		"%2F..%2Fdecode/1": "",
	} {
		h, s := newHandler()
		ask(h, http.MethodGet, "/v1/ids/segment/"+path)
		if got, _ := s.key.Load().(string); got != want {
			t.Errorf("%s: key %q, want %q", path, got, want)
		}
	}
}

func TestDecode(t *testing.T) {
	h, _ := newHandler()
	layout, _ := snowflake.Preset("leaf")
	parts, err := layout.Decode(2124187246151073968)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"id":"2124187246151073968","layout":"leaf","time":%q,"tick":"%d","worker":"%d","sequence":"%d"}`+"\n",
		parts.Time.UTC().Format(time.RFC3339Nano), parts.Tick, parts.Worker, parts.Sequence)
	for _, target := range []string{"/v1/decode/2124187246151073968", "/v1/decode/2124187246151073968?layout=leaf"} {
		if diff := cmp.Diff(want, ask(h, http.MethodGet, target).Body.String()); diff != "" {
			t.Errorf("%s: %s", target, diff)
		}
	}
}
