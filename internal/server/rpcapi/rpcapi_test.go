package rpcapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"github.com/leaf-id/leaf"
	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
)

func TestProtocols(t *testing.T) {
	for name, opts := range map[string][]connect.ClientOption{
		"connect":  nil,
		"json":     {connect.WithProtoJSON()},
		"grpc":     {connect.WithGRPC()},
		"grpc-web": {connect.WithGRPCWeb()},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, loopback, opts...)
			next, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"})
			if err != nil || next.GetId() != 100 {
				t.Fatalf("Next: %v, %v", next, err)
			}
			take, err := f.ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: "segment", Key: "order", Count: 1000})
			if err != nil {
				t.Fatal(err)
			}
			var got int64
			for _, r := range take.GetRanges() {
				got += r.GetEnd() - r.GetStart()
			}
			if first := take.GetRanges()[0].GetStart(); got != 1000 || first != 101 {
				t.Errorf("Take: %d IDs from %d, want 1000 from 101", got, first)
			}
			_, err = f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "nope"})
			wantCode(t, "unknown tag", err, connect.CodeNotFound)
		})
	}
}

// Input and output of a client without any library: IDs are strings.
func TestPlainJSON(t *testing.T) {
	f := serve(t, loopback)
	post := func(method, body string) (int, string) {
		res, err := http.Post(f.url+"/leaf.v1.LeafService/"+method, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	for _, tt := range []struct {
		method, body string
		status       int
		want         string
	}{
		{"Next", `{"key":"order"}`, 200, `{"id":"100"}`},
		{"Take", `{"key":"order","count":3}`, 200, `{"ranges":[{"start":"101","end":"104"}]}`},
		{"Next", `{"key":"nope"}`, 404, `{"code":"not_found","message":"`},
		{"Next", `{`, 400, `{"code":"invalid_argument","message":"`},
		{"Next", `{"key":"` + strings.Repeat("k", 70_000) + `"}`, 429, `{"code":"resource_exhausted","message":"`},
		{"Nope", `{}`, 404, "404 page not found"},
	} {
		status, got := post(tt.method, tt.body)
		got = strings.ReplaceAll(got, `": "`, `":"`) // protojson varies its spaces on purpose
		got = strings.ReplaceAll(got, `, "`, `,"`)
		if status != tt.status || !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s %.40s: %d %s, want %d %s", tt.method, tt.body, status, got, tt.status, tt.want)
		}
	}
}

func TestIDErrors(t *testing.T) {
	f := serve(t, loopback)
	for _, tt := range []struct {
		scheme, key string
		count       int32
		want        connect.Code
	}{
		{"", "nope", 1, connect.CodeNotFound},
		{"", "", 1, connect.CodeInvalidArgument},
		{"", "a\x00", 1, connect.CodeInvalidArgument},
		{"", strings.Repeat("k", 129), 1, connect.CodeInvalidArgument},
		{"snowflake", "order", 1, connect.CodeUnimplemented},
		{"", "order", 0, connect.CodeInvalidArgument},
		{"", "order", -1, connect.CodeInvalidArgument},
		{"", "order", 1001, connect.CodeInvalidArgument},
	} {
		_, err := f.ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: tt.scheme, Key: tt.key, Count: tt.count})
		wantCode(t, tt.scheme+" "+tt.key, err, tt.want)
	}
}

// The RPC layer alone, over a failing source.
type failing struct{ issuer.Source }

func (failing) Next(context.Context, string) (issuer.ID, error) {
	return issuer.ID{}, leaf.ErrExhausted
}

func TestRetryAfter(t *testing.T) {
	mux := http.NewServeMux()
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: failing{}}, nil)
	rpcapi.Register(mux, &frontend.Options{IDs: ids, Tags: issuer.NewTags(memory.New().Store(), nil, nil), Listen: loopback})
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, opts := range [][]connect.ClientOption{nil, {connect.WithGRPCWeb()}} {
		_, err := leafv1connect.NewLeafServiceClient(server.Client(), server.URL, opts...).Next(t.Context(), &leafv1.NextRequest{Key: "k"})
		wantCode(t, "exhausted", err, connect.CodeUnavailable)
		if e, ok := errors.AsType[*connect.Error](err); !ok || e.Meta().Get("Retry-After") != "1" {
			t.Errorf("no Retry-After: %v", err)
		}
	}
}

func TestTexts(t *testing.T) {
	f := serve(t, everyone)
	one, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Scheme: "uuid"})
	if err != nil || len(one.GetText()) != 36 || one.GetId() != 0 {
		t.Errorf("Next: %v, %v", one, err)
	}
	many, err := f.ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: "uuid", Key: "v4", Count: 100})
	if err != nil || len(many.GetTexts()) != 100 || len(many.GetRanges()) != 0 || many.GetTexts()[99][14] != '4' {
		t.Errorf("Take: %v, %v", many, err)
	}
	_, err = f.ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: "uuid", Count: 1001})
	wantCode(t, "too many", err, connect.CodeInvalidArgument)
	_, err = f.ids.Next(t.Context(), &leafv1.NextRequest{Scheme: "uuid", Key: "v6"})
	wantCode(t, "version 6", err, connect.CodeInvalidArgument)
}

func TestTakeContiguous(t *testing.T) {
	f := serve(t, everyone)
	if _, err := f.ids.Next(t.Context(), &leafv1.NextRequest{Key: "order"}); err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Advance(t.Context(), "order", 5); err != nil { // another server
		t.Fatal(err)
	}
	res, err := f.ids.Take(t.Context(), &leafv1.TakeRequest{Key: "order", Count: 50, Contiguous: true})
	if err != nil || len(res.GetRanges()) != 1 || res.GetRanges()[0].GetEnd()-res.GetRanges()[0].GetStart() != 50 {
		t.Errorf("%v: %v", res, err)
	}
	_, err = f.ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: "uuid", Count: 2, Contiguous: true})
	wantCode(t, "UUIDs", err, connect.CodeInvalidArgument)
}

// The server accepts curl's default body as JSON for IDs, and nowhere else: any page can send it.
func TestCurl(t *testing.T) {
	f := serve(t, loopback)
	for path, want := range map[string]int{"/leaf.v1.LeafService/Take": http.StatusOK, "/leaf.v1.AdminService/CreateTag": http.StatusUnsupportedMediaType} {
		res, err := http.Post(f.url+path, "application/x-www-form-urlencoded", strings.NewReader(`{"key":"order","count":3}`))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode != want || want == http.StatusOK && !strings.Contains(string(body), `"100"`) {
			t.Errorf("%s: %d %s, %v", path, res.StatusCode, body, err)
		}
	}
}
