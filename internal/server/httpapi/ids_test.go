package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/segment"
)

const (
	typeText = "text/plain;charset=UTF-8"
	typeHTML = "text/html;charset=UTF-8"
	typeJSON = "application/json;charset=UTF-8"
)

func TestOneID(t *testing.T) {
	h, _ := newReal(t, newStore(t, segment.Tag{Name: "leaf-segment-test", MaxID: 1, Step: 2000}), nil)
	server := httptest.NewServer(h)
	defer server.Close()
	for _, want := range []string{"1", "2", "3"} {
		res, body := do(t, server, http.MethodGet, "/api/segment/get/leaf-segment-test")
		if res.StatusCode != 200 || body != want {
			t.Fatalf("%d %q, want 200 %q", res.StatusCode, body, want)
		}
		got := fmt.Sprint(res.ContentLength, res.Header["Content-Type"], res.Header["Cache-Control"], res.TransferEncoding)
		if want := fmt.Sprint(1, []string{typeText}, []string{"no-store"}, []string(nil)); got != want {
			t.Errorf("length, type, caching, encoding: %s, want %s", got, want)
		}
	}
}

func TestContentType(t *testing.T) {
	tests := []struct {
		accept []string
		want   string
	}{
		{nil, typeText},
		{[]string{""}, typeText},
		{[]string{"*/*"}, typeText},
		{[]string{"text/plain"}, typeText},
		{[]string{"application/json"}, typeJSON},
		{[]string{"Application/JSON ; charset=utf-8"}, typeJSON},
		{[]string{"application/json, text/plain, */*"}, typeJSON},
		{[]string{"text/plain, application/json"}, typeText},
		{[]string{"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}, typeHTML},
		{[]string{"application/json;q=0.5, text/html;q=0.6"}, typeHTML},
		{[]string{"*/*, text/html"}, typeHTML},
		{[]string{"application/json;q=0"}, typeText},
		{[]string{"application/json;q=NaN"}, typeText},
		{[]string{"application/json;q=high"}, typeText},
		{[]string{"image/png"}, typeText},
		{[]string{"image/png", "application/json"}, typeJSON},
		{[]string{",;,;q=,"}, typeText},
	}
	h, _ := newFake()
	for i, tt := range tests {
		req := httptest.NewRequest(http.MethodGet, "/api/segment/get/k", nil)
		if tt.accept != nil {
			req.Header["Accept"] = tt.accept
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if got := rec.Header().Get("Content-Type"); got != tt.want {
			t.Errorf("Accept %q: %s, want %s", tt.accept, got, tt.want)
		}
		if got := rec.Body.String(); got != strconv.Itoa(i+1) {
			t.Errorf("Accept %q: body %q, want the bare number %d", tt.accept, got, i+1)
		}
	}
}

func TestMethods(t *testing.T) {
	h, source := newFake()
	server := httptest.NewServer(h)
	defer server.Close()
	tests := []struct {
		method, target string
		status         int
		consumes       int64
	}{
		{"GET", "/api/segment/get/k", 200, 1},
		{"POST", "/api/segment/get/k", 200, 1},
		{"PUT", "/api/segment/get/k", 200, 1},
		{"PATCH", "/api/segment/get/k", 200, 1},
		{"DELETE", "/api/segment/get/k", 200, 1},
		{"POST", "/api/segment/get/k?n=3", 200, 3},
		{"HEAD", "/api/segment/get/k", 200, 0},
		{"HEAD", "/api/segment/get/k?n=3", 200, 0},
		{"HEAD", "/api/segment/get/k?n=0", 400, 0},
		{"HEAD", "/api/segment/get/%00", 500, 0},
		{"HEAD", "/api/snowflake/get/k", 501, 0},
		{"OPTIONS", "/api/segment/get/k", 200, 0},
		{"OPTIONS", "/api/segment/get/k?n=3", 200, 0},
		{"TRACE", "/api/segment/get/k", 405, 0},
		{"PROPFIND", "/api/segment/get/k", 405, 0},
	}
	for _, tt := range tests {
		before := source.next.Load()
		res, body := do(t, server, tt.method, tt.target)
		if res.StatusCode != tt.status {
			t.Errorf("%s %s: %d %s, want %d", tt.method, tt.target, res.StatusCode, body, tt.status)
		}
		if got := source.next.Load() - before; got != tt.consumes {
			t.Errorf("%s %s consumed %d IDs, want %d", tt.method, tt.target, got, tt.consumes)
		}
		if tt.method == "HEAD" && tt.status == 200 && res.Header.Get("Content-Type") != typeText {
			t.Errorf("%s: type %q", tt.method, res.Header.Get("Content-Type"))
		}
		if tt.method == "OPTIONS" || tt.status == 405 {
			if got, want := res.Header.Get("Allow"), "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"; got != want {
				t.Errorf("%s: Allow %q, want %q", tt.method, got, want)
			}
		}
	}
}

func TestKeys(t *testing.T) {
	long := strings.Repeat("k", segment.MaxTagLength)
	tests := []struct {
		path   string
		status int
		key    string
	}{
		{"order", 200, "order"},
		{"order/", 200, "order"},
		{"order.v1", 200, "order.v1"},
		{"a.b.c", 200, "a.b.c"},
		{"order.", 200, "order."},
		{"order;jsessionid=1", 200, "order"},
		{"order;a=b;c=d/", 200, "order"},
		{"order%3Ba", 200, "order;a"},
		{"order%3Ba;b", 200, "order;a"},
		{"a%2Fb", 200, "a/b"},
		{"a%2Fb/", 200, "a/b"},
		{"%2E%2E%2Fx", 200, "../x"},
		{"%E8%AE%A2%E5%8D%95", 200, "订单"},
		{"订单", 200, "订单"},
		{"Order", 200, "Order"},
		{"order%20", 200, "order "},
		{"a+b", 200, "a+b"},
		{"a%25b", 200, "a%b"},
		{"a%3Fb", 200, "a?b"},
		{long, 200, long},
		{long + "k", 500, ""},
		{"%00", 500, ""},
		{"a%0Ab", 500, ""},
		{"%FF", 500, ""},
		{"/order", 200, "order"},
		{"order//", 200, "order"},
		{"///order///", 200, "order"},
		{"/a%2Fb//", 200, "a/b"},
		{"/%2Fb", 200, "/b"},
		{"order//x", 404, ""},
		{"//", 404, ""},
		{"", 404, ""},
		{";a", 404, ""},
		{"order/x", 404, ""},
		{"order/x/", 404, ""},
	}
	for _, tt := range tests {
		t.Run(tt.path, func(t *testing.T) {
			h, source := newFake()
			server := httptest.NewServer(h)
			defer server.Close()
			res, body := do(t, server, http.MethodGet, "/api/segment/get/"+tt.path)
			if res.StatusCode != tt.status || source.lastKey() != tt.key {
				t.Errorf("%d %s, key %q; want %d, key %q", res.StatusCode, body, source.lastKey(), tt.status, tt.key)
			}
		})
	}
}

// Paths that no client library sends.
func TestRawPaths(t *testing.T) {
	h, source := newFake()
	server := httptest.NewServer(h)
	defer server.Close()
	for target, want := range map[string]int{
		"/api/segment/get/%zz":         400,
		"/api/segment/get/%":           400,
		"/api/segment/get/../../db":    404,
		"/api/segment/get//":           404,
		"/api/segment/get/a//b":        404,
		"/api/segment/get":             404,
		"//":                           200,
		"//cache":                      500,
		"//v1//ids/uuid/v7":            200,
		"/x/../cache":                  404,
		"/api/segment/get/a\x00b":      400,
		"/api/segment/get/k?n=1&n=2":   400,
		"/api/segment/get/k?n=1&m=2":   400,
		"/api/segment/get/k?n=%zz":     400,
		"/api/segment/get/k?n=100;n=1": 400,
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", target)
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%q: %v", target, err)
		}
		if got := res.Header.Get("Content-Type"); want == 404 && got != typeJSON {
			t.Errorf("%q: type %q", target, got)
		}
		if res.StatusCode != want {
			t.Errorf("%q: %d, want %d", target, res.StatusCode, want)
		}
		_ = res.Body.Close()
		_ = conn.Close()
	}
	if n := source.next.Load(); n != 0 {
		t.Errorf("%d IDs were consumed", n)
	}
}

func TestBatch(t *testing.T) {
	h, _ := newFake()
	server := httptest.NewServer(h)
	defer server.Close()
	var lines strings.Builder
	for id := 4; id < 5004; id++ {
		fmt.Fprintln(&lines, id)
	}
	tests := []struct {
		query, accept, body, contentType string
	}{
		{"n=3", "*/*", "1\n2\n3\n", typeText},
		{"n=5000", "text/html", lines.String(), typeText},
		{"n=1", "text/plain", "5004\n", typeText},
		{"n=2", "application/json", `["5005","5006"]`, typeJSON},
		{"n=1", "application/json", `["5007"]`, typeJSON},
		{"count=5", "application/json", "5008", typeJSON},
		{"n=002", "application/json", `["5009","5010"]`, typeJSON},
	}
	for _, tt := range tests {
		res, body := do(t, server, http.MethodGet, "/api/segment/get/k?"+tt.query, "Accept", tt.accept)
		if diff := cmp.Diff(tt.body, body); diff != "" || res.StatusCode != 200 {
			t.Errorf("%s: %d %s", tt.query, res.StatusCode, diff)
		}
		if got := res.Header.Get("Content-Type"); got != tt.contentType {
			t.Errorf("%s: type %s, want %s", tt.query, got, tt.contentType)
		}
	}
	_, body := do(t, server, http.MethodGet, "/api/segment/get/k?n=5000", "Accept", "application/json")
	var ids []string
	if err := json.Unmarshal([]byte(body), &ids); err != nil || len(ids) != 5000 || ids[0] != "5011" || ids[4999] != "10010" {
		t.Errorf("JSON batch: %v, %d IDs", err, len(ids))
	}
}

func TestBadBatch(t *testing.T) {
	h, source := newFake()
	for _, n := range []string{"0", "-1", "5001", "99999999999999999999", "x", "", "1e3", "0x10", "1.0", " 1", "%2B2", "-0", "%D9%A2", "%31%00", "1&n=1"} {
		res, body := get(h, "/api/segment/get/k?n="+strings.ReplaceAll(n, " ", "%20"))
		var got struct {
			Status         int
			Error, Message string
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatalf("n=%s: %v in %s", n, err, body)
		}
		if res.StatusCode != 400 || got.Status != 400 || got.Error != "Bad Request" || !strings.Contains(got.Message, "1 to 5000") && !strings.Contains(got.Message, "n is given 2 times") {
			t.Errorf("n=%s: %d %s", n, res.StatusCode, body)
		}
	}
	if n := source.next.Load(); n != 0 {
		t.Errorf("%d IDs were consumed", n)
	}
}

// No path causes a panic, and no invalid key gets an ID.
func FuzzKey(f *testing.F) {
	for _, seed := range []string{"order", "a/", "a;b", "%2F", "%3B", "%00", "..", "%2E%2E/", "//", "a%", "\xff", "%ff", "订单", "a?n=2", "a?n=-1", ";", "a%3Bb;c/"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader("GET /api/segment/get/" + rest + " HTTP/1.1\r\nHost: x\r\n\r\n")))
		if err != nil {
			return // net/http answers with 400
		}
		h, source := newFake()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		issued, key := source.next.Load(), source.lastKey()
		if err := segment.CheckTagName(key); issued > 0 && err != nil {
			t.Errorf("%q: ID for key %q: %v", rest, key, err)
		}
		if (rec.Code == http.StatusOK) != (issued > 0) {
			t.Errorf("%q: status %d with %d IDs", rest, rec.Code, issued)
		}
	})
}

// An invalid batch uses no quota.
func TestBadBatchCountsForNoLimit(t *testing.T) {
	ids := issuer.New(nil, &issuer.Options{MaxBatch: 10})
	gate := access.New(access.Options{Limits: access.Limits{Tags: map[string]access.Limit{"*": {Quota: 11}}}})
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Access: gate})
	if res, body := get(h, "/api/uuid/get/v4?n=11"); res.StatusCode != 400 {
		t.Errorf("too many: %d %s", res.StatusCode, body)
	}
	if res, body := get(h, "/api/uuid/get/v4?n=10"); res.StatusCode != 200 {
		t.Errorf("after that: %d %s", res.StatusCode, body)
	}
	if res, body := get(h, "/api/uuid/get/v4?n=2"); res.StatusCode != 429 {
		t.Errorf("over the quota: %d %s", res.StatusCode, body)
	}
}

// Java Leaf cuts a tag's name at its last dot. Its route here does so if only the cut name is a
// tag.
func TestJavaKeyWithADot(t *testing.T) {
	store := newStore(t, segment.Tag{Name: "order", MaxID: 100, Step: 10}, segment.Tag{Name: "a.b", MaxID: 200, Step: 10},
		segment.Tag{Name: "a", MaxID: 300, Step: 10})
	h, _ := newReal(t, store, nil)
	server := httptest.NewServer(h)
	defer server.Close()
	for _, tt := range []struct {
		path, want string // want "": an unknown tag
	}{
		{"/api/segment/get/order.v1", "100"}, {"/api/segment/get/order.", "101"}, {"/api/segment/get/order.v1?n=2", "102\n103\n"},
		{"/api/segment/get/a.b", "200"}, {"/api/segment/get/a.b.c", "201"}, {"/api/segment/get/a." + strings.Repeat("b", 130), "300"},
		{"/api/segment/get/order.v1.x", ""}, {"/api/segment/get/.order", ""}, {"/api/segment/get/nope.v1", ""},
		{"/v1/ids/segment/order.v1", ""},
	} {
		res, body := do(t, server, http.MethodGet, tt.path)
		if (res.StatusCode == 200) != (tt.want != "") || tt.want != "" && body != tt.want {
			t.Errorf("%s: %d %q, want %q", tt.path, res.StatusCode, body, tt.want)
		}
	}
	if res, _ := do(t, server, http.MethodHead, "/api/segment/get/order.v1"); res.StatusCode != 200 {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
}

// A caller needs the right to the tag that remains of a cut key, and uses up its limit.
func TestRightsOfACutKey(t *testing.T) {
	text := "tokens: [{name: a, hash: '" + access.HashToken("a") + "', take: [order]}, {name: b, hash: '" + access.HashToken("b") + "', take: ['order.*']}]"
	gate := testgate.New(t, access.Options{Limits: access.Limits{Tags: map[string]access.Limit{"order": {Quota: 2}}}}, text)
	store := newStore(t, segment.Tag{Name: "order", MaxID: 100, Step: 10})
	set := segment.NewSet(store, nil)
	defer set.Close(context.Background())
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil)
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Access: gate})
	for _, tt := range []struct {
		token, path string
		status      int
	}{
		{"b", "/api/segment/get/order.v1", 500}, {"a", "/api/segment/get/order.v1", 200}, {"a", "/api/segment/get/order.v2", 200},
		{"a", "/api/segment/get/order.v3", 429}, {"a", "/api/segment/get/other.v1", 403},
	} {
		if res, body := get(h, tt.path, "Authorization", "Bearer "+tt.token); res.StatusCode != tt.status {
			t.Errorf("%s, %s: %d %s, want %d", tt.token, tt.path, res.StatusCode, body, tt.status)
		}
	}
}
