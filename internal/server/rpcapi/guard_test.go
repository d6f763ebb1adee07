package rpcapi_test

import (
	"net"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

func TestGuardOnPublicAddress(t *testing.T) {
	for _, listen := range []net.Addr{everyone, &net.TCPAddr{IP: net.IPv6zero}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1)}, &net.UnixAddr{Name: "x"}} {
		for name, opts := range map[string][]connect.ClientOption{"connect": nil, "grpc": {connect.WithGRPC()}, "grpc-web": {connect.WithGRPCWeb()}} {
			f := serve(t, listen, opts...)
			_, err := f.admin.CreateTag(t.Context(), &leafv1.CreateTagRequest{Name: "a", Step: 1})
			wantCode(t, name+" create", err, connect.CodePermissionDenied)
			if err != nil && (!strings.Contains(err.Error(), "no credentials") || strings.Contains(err.Error(), "--")) {
				t.Errorf("the message does not say what is wrong, or names flags: %v", err)
			}
			_, err = f.admin.AlterTag(t.Context(), &leafv1.AlterTagRequest{Name: "order", Step: new(int64(1))})
			wantCode(t, name+" alter", err, connect.CodePermissionDenied)
			_, err = f.admin.DeleteTag(t.Context(), &leafv1.DeleteTagRequest{Name: "order"})
			wantCode(t, name+" delete", err, connect.CodePermissionDenied)
			list, err := f.admin.ListTags(t.Context(), new(leafv1.ListTagsRequest))
			if err != nil || len(list.GetTags()) != 1 || list.GetTags()[0].GetStep() != 10 {
				t.Errorf("%s: tags were changed: %v, %v", name, list, err)
			}
		}
	}
}

func TestGuardOnLoopback(t *testing.T) {
	tests := []struct {
		host, origin, site string
		status             int
	}{
		{"localhost:8080", "", "", 200},
		{"LOCALHOST", "", "", 200},
		{"127.0.0.1", "", "", 200},
		{"127.0.0.1:8080", "", "", 200},
		{"[::1]:8080", "", "", 200},
		{"[::1]", "", "", 200},
		{"127.0.0.1:8080", "http://127.0.0.1:8080", "same-origin", 200},
		{"rebound.example:8080", "", "", 403},
		{"rebound.example", "http://rebound.example", "same-origin", 403},
		{"localhost.rebound.example", "", "", 403},
		{"127.0.0.1.rebound.example", "", "", 403},
		{"127.0.0.1:8080", "http://evil.example", "", 403},
		{"127.0.0.1:8080", "http://evil.example", "cross-site", 403},
		{"localhost:8080", "http://localhost:3000", "same-site", 403},
	}
	for _, tt := range tests {
		f := serve(t, loopback)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/leaf.v1.AdminService/CreateTag", strings.NewReader(`{"name":"a","step":"1"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tt.host
		req.Header.Set("Content-Type", "application/json")
		if tt.origin != "" {
			req.Header.Set("Origin", tt.origin)
		}
		if tt.site != "" {
			req.Header.Set("Sec-Fetch-Site", tt.site)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != tt.status {
			t.Errorf("host %q, origin %q, site %q: %d, want %d", tt.host, tt.origin, tt.site, res.StatusCode, tt.status)
		}
	}
}

// A page whose host name leads here reads nothing either.
func TestGuardOnReads(t *testing.T) {
	for _, method := range []string{"ListTags", "Status"} {
		for host, want := range map[string]int{"rebound.example:8080": 403, "localhost:8080": 200} {
			for listen, want := range map[net.Addr]int{loopback: want, everyone: 200} {
				f := serve(t, listen)
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/leaf.v1.AdminService/"+method, strings.NewReader("{}"))
				if err != nil {
					t.Fatal(err)
				}
				req.Host = host
				req.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = res.Body.Close()
				if res.StatusCode != want {
					t.Errorf("%s for host %s on %v: %d, want %d", method, host, listen, res.StatusCode, want)
				}
			}
		}
	}
}

// A batch that is always refused uses no quota.
func TestBadBatchCountsForNoLimit(t *testing.T) {
	gate := access.New(access.Options{Limits: access.Limits{Tags: map[string]access.Limit{"*": {Quota: 11}}}})
	f := serveBackend(t, everyone, frontend.Options{IDs: issuer.New(nil, &issuer.Options{MaxBatch: 10, MaxRange: 20}), Access: gate})
	take := func(n int32) error {
		_, err := f.ids.Take(t.Context(), &leafv1.TakeRequest{Scheme: issuer.UUID, Key: "v4", Count: n})
		return err
	}
	wantCode(t, "too many", take(11), connect.CodeInvalidArgument)
	if err := take(10); err != nil {
		t.Errorf("after that: %v", err)
	}
	wantCode(t, "over the quota", take(2), connect.CodeResourceExhausted)
}
