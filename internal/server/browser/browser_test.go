package browser_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/browser"
)

const (
	ids   = "/v1/ids/segment/order"
	java  = "/api/segment/get/order"
	rpc   = "/leaf.v1.LeafService/Next"
	admin = "/leaf.v1.AdminService/DeleteTag"
	shop  = "https://shop.example"
	other = "https://other.example"
)

var next = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "served") })

func ask(h http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestSecurityHeaders(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	tests := []struct {
		path   string
		header []string
		want   bool
	}{
		{ids, []string{"User-Agent", firefox}, true},
		{java, []string{"User-Agent", firefox}, true},
		{ids, []string{"Sec-Fetch-Site", "cross-site"}, true}, // and refused
		{"/cache", nil, true},
		{"/", []string{"User-Agent", "curl/8.5.0"}, true},
		{admin, nil, true},
		{ids, []string{"User-Agent", "Go-http-client/1.1"}, false},
		{ids, nil, false},
	}
	for _, tt := range tests {
		w := ask(browser.New([]string{shop}, next), "GET", tt.path, tt.header...)
		for name, value := range map[string]string{
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
			"Referrer-Policy":              "no-referrer",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'",
		} {
			want := ""
			if tt.want {
				want = value
			}
			if got := w.Header().Get(name); got != want {
				t.Errorf("%s %q: %s: %q, want %q", tt.path, tt.header, name, got, want)
			}
		}
	}
}

func TestCORS(t *testing.T) {
	h := browser.New([]string{shop, "http://127.0.0.1:*"}, next)
	tests := []struct {
		origin, path string
		want         string
	}{
		{shop, ids, shop},
		{shop, rpc, shop},
		{shop, "/openapi.yaml", shop},
		{"http://127.0.0.1:1234", ids, "http://127.0.0.1:1234"},
		{other, ids, ""},
		{other, rpc, ""},
		{"null", ids, ""},
		{shop + ".example", ids, ""},
		{shop, admin, ""},
		{shop, java, ""},
		{shop, "/cache", ""},
	}
	for _, tt := range tests {
		w := ask(h, "GET", tt.path, "Origin", tt.origin)
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != tt.want || w.Body.String() != "served" {
			t.Errorf("%s from %s: %q %s, want %q", tt.path, tt.origin, got, w.Body, tt.want)
		}
		if exposed := strings.Join(w.Header().Values("Access-Control-Expose-Headers"), ","); tt.want != "" && (!strings.Contains(exposed, "Retry-After") || !strings.Contains(exposed, "Grpc-Status-Details-Bin")) {
			t.Errorf("%s: exposed: %s", tt.path, exposed)
		}
		if w.Header().Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: a page may send the cookies of its user", tt.path)
		}
		w = ask(h, "OPTIONS", tt.path, "Origin", tt.origin, "Access-Control-Request-Method", "POST",
			"Access-Control-Request-Headers", "authorization,connect-protocol-version,content-type")
		if got := w.Header().Get("Access-Control-Allow-Origin"); got != tt.want {
			t.Errorf("preflight of %s from %s: %d %q, want %q", tt.path, tt.origin, w.Code, got, tt.want)
		}
	}
	if w := ask(h, "GET", ids); w.Header().Get("Vary") != "Origin" {
		t.Errorf("without an origin: Vary %q", w.Header().Get("Vary"))
	}
	if w := ask(browser.New([]string{"*"}, next), "GET", ids, "Origin", other); w.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("all origins: %v", w.Header())
	}
	if w := ask(browser.New(nil, next), "GET", ids, "Origin", other); w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Vary") != "" {
		t.Errorf("no origins: %v", w.Header())
	}
}

// A page of another site cannot have a browser use IDs up, whether it could read them or
// not.
func TestForeignPages(t *testing.T) {
	h := browser.New([]string{shop}, next)
	link := []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	frame := []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}
	tests := []struct {
		method, path, site string
		header             []string
		served             bool
	}{
		{"GET", ids, "cross-site", nil, false},
		{"GET", ids, "same-site", nil, false},
		{"GET", java, "cross-site", nil, false},
		{"GET", "/tinyid/id/nextId", "cross-site", nil, false},
		{"GET", "http://x//" + java, "cross-site", nil, false}, // served as if it had one slash
		{"GET", "http://x//v1//ids/segment/order", "cross-site", nil, false},
		{"POST", java, "cross-site", []string{"Origin", other}, false},
		{"GET", ids, "cross-site", []string{"Origin", other}, false},
		{"GET", ids, "cross-site", []string{"Origin", shop}, true},
		{"POST", rpc, "cross-site", []string{"Origin", other}, false},
		{"POST", rpc, "cross-site", []string{"Origin", shop}, true},
		{"GET", ids, "same-origin", nil, true},
		{"GET", ids, "none", nil, true},
		{"GET", ids, "cross-site", link, true},
		{"POST", ids, "cross-site", link, false},
		{"GET", ids, "cross-site", frame, false},
		{"GET", "/healthz", "cross-site", nil, true},
	}
	for _, tt := range tests {
		w := ask(h, tt.method, tt.path, append(tt.header, "Sec-Fetch-Site", tt.site)...)
		if served := w.Code == 200; served != tt.served || !served && (w.Code != 403 || !strings.Contains(w.Body.String(), `"FORBIDDEN"`)) {
			t.Errorf("%s %s %s %q: %d %s", tt.method, tt.path, tt.site, tt.header, w.Code, w.Body)
		}
	}
}

// A page whose name points to this machine takes no IDs; programs do.
func TestHostIsChecked(t *testing.T) {
	h := browser.New(nil, next)
	h.CheckHost = func(r *http.Request) error {
		if r.Host == "localhost" {
			return nil
		}
		return access.ErrForbidden
	}
	for _, c := range []struct {
		host, path string
		header     []string
		want       int
	}{
		{"evil.example", ids, []string{"User-Agent", "Mozilla/5.0"}, 403},
		{"evil.example", java, []string{"Sec-Fetch-Site", "same-origin"}, 403},
		{"evil.example", rpc, []string{"User-Agent", "Mozilla/5.0"}, 403},
		{"evil.example", ids, []string{"User-Agent", "curl/8.5.0"}, 200},
		{"evil.example", "/healthz", []string{"User-Agent", "Mozilla/5.0"}, 200},
		{"localhost", ids, []string{"User-Agent", "Mozilla/5.0"}, 200},
	} {
		r := httptest.NewRequest("GET", c.path, nil)
		r.Host = c.host
		for i := 0; i < len(c.header); i += 2 {
			r.Header.Set(c.header[i], c.header[i+1])
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s%s %q: %d, want %d", c.host, c.path, c.header, w.Code, c.want)
		}
	}
}
