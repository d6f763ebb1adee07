package server_test

import (
	"net/http"
	"testing"

	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/server/access"
)

// A page whose host name points to this machine may send any Authorization header. Only a valid
// token gets it IDs.
func TestPagesOnLoopback(t *testing.T) {
	file, tokens := tokensFile(t, map[string]string{"app": `take: ["*"]`})
	for _, c := range []struct {
		name, file, token string
		limits            access.Limits
		want              int
	}{
		{name: "no token", want: 403},
		{name: "any token where there are none", token: "x", want: 403},
		{name: "limits", token: "x", limits: access.Limits{Client: access.Limit{Quota: 1000}}, want: 403},
		{name: "no token where one is needed", file: file, want: 401},
		{name: "a wrong token", file: file, token: "x", want: 401},
		{name: "a valid token", file: file, token: tokens["app"], want: 200},
	} {
		r := run(t, nil, func(o *server.Options) {
			o.Config.TokensFile, o.Config.Limits.Client = c.file, c.limits.Client
		})
		for _, path := range []string{"/v1/ids/segment/order", "/api/segment/get/order"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = "evil.example"
			req.Header.Set("User-Agent", "Mozilla/5.0")
			if c.token != "" {
				req.Header.Set("Authorization", "Bearer "+c.token)
			}
			resp, err := r.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != c.want {
				t.Errorf("%s, %s: %d, want %d", c.name, path, resp.StatusCode, c.want)
			}
		}
	}
}
