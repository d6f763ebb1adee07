package tinyid_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/tinyid"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/internal/testserver/tinyidclient"
	"github.com/leaf-id/leaf/segment"
)

type server struct{ *httptest.Server }

func newServer(t *testing.T, gate *access.Gate, tags ...segment.Tag) server {
	store := memory.New().Store()
	for _, tag := range tags {
		if err := store.Create(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	set := segment.NewSet(store, nil)
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil)
	if gate == nil {
		gate = access.New(access.Options{})
	}
	s := server{httptest.NewServer(tinyid.New(&frontend.Options{IDs: ids, Access: gate}, http.NotFoundHandler()))}
	t.Cleanup(func() {
		s.Close()
		if err := set.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s server) do(t *testing.T, method, target, form string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+target, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if form != "" {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func (s server) get(t *testing.T, target string) (*http.Response, string) {
	t.Helper()
	return s.do(t, http.MethodGet, target, "")
}

// Each answer is TinyID's, byte for byte. One tag, in this order.
func TestAnswers(t *testing.T) {
	s := newServer(t, nil, segment.Tag{Name: "order", MaxID: 1, Step: 100})
	const (
		jsonType = "application/json;charset=UTF-8"
		textType = "text/plain;charset=UTF-8"
	)
	tests := []struct {
		method, target, form string
		want, contentType    string
	}{
		{"GET", "/tinyid/id/nextId?bizType=order", "", `{"data":[1],"code":200,"message":""}`, jsonType},
		{"POST", "/tinyid/id/nextId", "bizType=order&token=x&batchSize=3", `{"data":[2,3,4],"code":200,"message":""}`, jsonType},
		{"GET", "/tinyid/id/nextIdSimple?bizType=order&batchSize=", "", "5", textType},
		{"GET", "/tinyid/id/nextIdSimple?bizType=order&batchSize=2", "", "6,7", textType},
		{"GET", "/tinyid/id/nextId?bizType=order&batchSize=0", "", `{"data":[],"code":200,"message":""}`, jsonType},
		{"GET", "/tinyid/id/nextIdSimple?bizType=order&batchSize=-1", "", "", textType},
		{"POST", "/tinyid/id/nextSegmentIdSimple?token=x&bizType=order", "", "7,25,100,1,0", textType},
		{"GET", "/tinyid/id/nextSegmentId?bizType=order", "",
			`{"data":{"maxId":200,"loadingId":120,"currentId":100,"delta":1,"remainder":0},"code":200,"message":""}`, jsonType},
	}
	for _, tt := range tests {
		resp, body := s.do(t, tt.method, tt.target, tt.form)
		if resp.StatusCode != 200 || body != tt.want || resp.Header.Get("Content-Type") != tt.contentType || resp.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %s: %d %q %v\nwant %q", tt.method, tt.target, resp.StatusCode, body, resp.Header, tt.want)
		}
	}
}

// TinyID has no ID 0.
func TestNoZero(t *testing.T) {
	s := newServer(t, nil, segment.Tag{Name: "order", MaxID: 0, Step: 1})
	_, body := s.get(t, "/tinyid/id/nextSegmentIdSimple?bizType=order")
	segment, err := tinyidclient.Parse(200, body)
	if err != nil || segment.Current < 0 || segment.Max <= segment.Current {
		t.Errorf("%q: %+v %v", body, segment, err)
	}
}

// Failures have status 200, and an empty body where the answer would be text.
func TestFailures(t *testing.T) {
	s := newServer(t, nil, segment.Tag{Name: "order", MaxID: 1, Step: 100})
	tests := []struct {
		target  string
		code    int
		message string
	}{
		{"nextId?bizType=x", 6, "error query segmentId: can not find biztype:x"},
		{"nextId", 6, "error query segmentId: can not find biztype:"},
		{"nextSegmentId?bizType=x", 6, "can not find biztype:x"},
		{"nextSegmentId?bizType=%22%3Cb%3E", 6, `can not find biztype:"<b>`},
		{"nextId?bizType=order&batchSize=10001", 6, "error query segmentId: invalid argument: 10001 IDs at once; ask for 1 to 10000"},
	}
	for _, tt := range tests {
		resp, body := s.get(t, "/tinyid/id/"+tt.target)
		var got struct {
			Data    *int
			Code    int
			Message string
		}
		err := json.Unmarshal([]byte(body), &got)
		if err != nil || resp.StatusCode != 200 || got.Code != tt.code || got.Message != tt.message || got.Data != nil || !strings.HasPrefix(body, `{"data":null,`) {
			t.Errorf("%s: %d %s (%v)", tt.target, resp.StatusCode, body, err)
		}
		route, query, _ := strings.Cut(tt.target, "?")
		resp, body = s.get(t, "/tinyid/id/"+route+"Simple?"+query)
		if resp.StatusCode != 200 || body != "" {
			t.Errorf("%sSimple: %d %q", route, resp.StatusCode, body)
		}
		if _, err := tinyidclient.Parse(resp.StatusCode, body); !errors.Is(err, tinyidclient.ErrNull) {
			t.Errorf("the Java client reads %v", err)
		}
	}
}

// What TinyID refuses before it looks for IDs, and what would waste them, takes none.
func TestRefusals(t *testing.T) {
	s := newServer(t, nil, segment.Tag{Name: "order", MaxID: 1, Step: 100})
	tests := []struct {
		method, target, form string
		status               int
	}{
		{"GET", "/tinyid/id/nextId?bizType=order&batchSize=x", "", 400},
		{"POST", "/tinyid/id/nextId", "bizType=" + strings.Repeat("x", 20<<10), 400},
		{"HEAD", "/tinyid/id/nextSegmentIdSimple?bizType=order", "", 405},
		{"PUT", "/tinyid/id/nextId?bizType=order", "", 405},
		{"OPTIONS", "/tinyid/id/nextId?bizType=order", "", 204},
		{"GET", "/tinyid/id/nope?bizType=order", "", 404},
	}
	for _, tt := range tests {
		resp, body := s.do(t, tt.method, tt.target, tt.form)
		if resp.StatusCode != tt.status {
			t.Errorf("%s %s: %d %s", tt.method, tt.target, resp.StatusCode, body)
		}
	}
	if _, body := s.get(t, "/tinyid/id/nextIdSimple?bizType=order"); body != "1" {
		t.Errorf("IDs were used up: %s", body)
	}
}

// A token among the parameters is one of the server's: also one that TinyID's users had chosen.
func TestTokens(t *testing.T) {
	old, other := "0f673adf80504e2eaa552f5d791b644c", access.NewToken()
	gate := testgate.New(t, access.Options{}, fmt.Sprintf("tokens:\n- {name: shop, hash: '%s', take: [order], limits: {quota: 150}}\n- {name: other, hash: '%s', take: [user]}\n",
		access.HashToken(old), access.HashToken(other)))
	s := newServer(t, gate, segment.Tag{Name: "order", MaxID: 1, Step: 100}, segment.Tag{Name: "user", MaxID: 1, Step: 100})
	const wrong = `{"data":null,"code":5,"message":"token is error"}` + "\n"
	for _, query := range []string{"bizType=order", "bizType=order&token=", "bizType=order&token=x", "bizType=user&token=" + old, "token=" + old} {
		if resp, body := s.get(t, "/tinyid/id/nextId?"+query); resp.StatusCode != 200 || body != wrong {
			t.Errorf("%s: %d %s", query, resp.StatusCode, body)
		}
	}
	if _, body := s.get(t, "/tinyid/id/nextIdSimple?bizType=user&token="+other); body != "1" {
		t.Errorf("with a token in the query: %q", body)
	}
	if _, body := s.do(t, "POST", "/tinyid/id/nextIdSimple", url.Values{"bizType": {"user"}, "token": {other}}.Encode()); body != "2" {
		t.Errorf("with a token in the form: %q", body)
	}
	if _, body := s.do(t, "GET", "/tinyid/id/nextIdSimple?bizType=user", "", "Authorization", "Bearer "+other); body != "3" {
		t.Errorf("with a token in the header: %q", body)
	}
	// A segment counts with its size against the limits, and a refused one is not lost.
	if _, body := s.get(t, "/tinyid/id/nextSegmentIdSimple?bizType=order&token="+old); body != "0,20,100,1,0" {
		t.Errorf("a segment: %q", body)
	}
	if _, body := s.get(t, "/tinyid/id/nextSegmentId?bizType=order&token="+old); !strings.Contains(body, `"code":6,"message":"over a limit`) {
		t.Errorf("a segment beyond the limit: %q", body)
	}
}

// A segment beyond a quota costs an ID of the quota: a caller cannot waste segments for nothing.
func TestRefusedSegmentCosts(t *testing.T) {
	gate := testgate.New(t, access.Options{}, fmt.Sprintf("tokens: [{name: shop, hash: '%s', take: [order], limits: {quota: 2}}]", access.HashToken("x")))
	s := newServer(t, gate, segment.Tag{Name: "order", MaxID: 1, Step: 100})
	for range 2 {
		if _, body := s.get(t, "/tinyid/id/nextSegmentId?bizType=order&token=x"); !strings.Contains(body, "over a limit") {
			t.Errorf("a segment beyond the quota: %q", body)
		}
	}
	if _, body := s.get(t, "/tinyid/id/nextId?bizType=order&token=x"); !strings.Contains(body, "over a limit") {
		t.Errorf("after two refused segments: %q, want the quota used up", body)
	}
}

// A store's words stay in the log.
func TestStoreErrors(t *testing.T) {
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(failing{})}, nil)
	h := tinyid.New(&frontend.Options{IDs: ids, Access: access.New(access.Options{})}, http.NotFoundHandler())
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/tinyid/id/nextId?bizType=order", nil))
	if body := w.Body.String(); w.Code != 200 || strings.Contains(body, "10.0.0.7") || !strings.Contains(body, `"code":6`) {
		t.Errorf("%d %s", w.Code, body)
	}
}

// A failing generator fails as a store does.
type failing struct{}

func (failing) Next(context.Context, string) (int64, error) {
	return 0, &leaf.StoreError{Err: errors.New("dial 10.0.0.7: refused")}
}

func (failing) Take(_ context.Context, _ string, dst []leaf.Range, _ int) ([]leaf.Range, error) {
	return dst, &leaf.StoreError{Err: errors.New("dial 10.0.0.7: refused")}
}
