package httpapi_test

import (
	"bufio"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/api"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
)

// A describedRoute is a path of the description with the statuses of its answers.
type describedRoute struct {
	path     *regexp.Regexp
	statuses map[string]map[string]bool // by the method in small letters
}

func describedRoutes(t testing.TB) (routes []describedRoute) {
	var doc struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	if err := yaml.Unmarshal([]byte(api.OpenAPI), &doc); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\\\{\w+\\\}`)
	for path, operations := range doc.Paths {
		r := describedRoute{
			path:     regexp.MustCompile("^" + parameter.ReplaceAllString(regexp.QuoteMeta(path), "[^/]*") + "/*$"),
			statuses: make(map[string]map[string]bool),
		}
		for method, operation := range operations {
			r.statuses[method] = make(map[string]bool)
			for status := range operation.Responses {
				r.statuses[method][status] = true
			}
		}
		routes = append(routes, r)
	}
	return routes
}

// No request causes a panic, and the description has every server error.
func FuzzFaults(f *testing.F) {
	for _, seed := range [][2]string{
		{"GET", "/v1/ids/segment/order?n=3&ranges=1"}, {"POST", "/v1/ids/uuid/v7?format=text"}, {"GET", "/v1/ids/ticket/x"},
		{"GET", "/v1/decode/1?layout=uid"}, {"HEAD", "/v1/ids/snowflake/%2F"}, {"GET", "//v1//ids"}, {"GET", "/v1/ids/segment/%00"},
		{"GET", "/api/segment/get/order?n=2"}, {"PATCH", "/api/uid/get/x;y=1/"}, {"GET", "/api/uid/parse/-1"}, {"GET", "/cache/"},
		{"GET", "/db"}, {"GET", "/decodeSnowflakeId?snowflakeId=9"}, {"GET", "/readyz?verbose&scheme=x"}, {"GET", "/proto/leaf/v1/.."},
		{"OPTIONS", "*"}, {"TRACE", "/"}, {"GET", "/%2e%2e/x"}, {"GET", "/api/segment/get/a%2fb//"}, {"GET", "/v1/ids/segment/order?%"},
	} {
		f.Add(seed[0], seed[1], "", uint8(0))
		f.Add(seed[0], seed[1], "text/html;q=0.5", uint8(3))
	}
	routes := describedRoutes(f)
	errs := []error{nil, leaf.ErrExhausted, leaf.ErrUnknownTag, leaf.ErrOverflow, leaf.ErrNoLease, &access.LimitError{}, leaf.ErrClosed}
	f.Fuzz(func(t *testing.T, method, target, accept string, fault uint8) {
		req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(method + " " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n")))
		if err != nil {
			return // net/http answers with 400
		}
		req.Header.Set("Accept", accept)
		source := &fakeSource{err: errs[int(fault)%len(errs)]}
		ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(source)}, nil)
		w := httptest.NewRecorder()
		httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Access: access.New(access.Options{Local: true})}).ServeHTTP(w, req)
		if w.Code >= 500 && !isDescribed(routes, req, w.Code) {
			t.Errorf("%s %s: %d is not in the description: %s", method, target, w.Code, w.Body)
		}
	})
}

func isDescribed(routes []describedRoute, r *http.Request, status int) bool {
	path := regexp.MustCompile("/+").ReplaceAllString(r.URL.EscapedPath(), "/")
	for _, route := range routes {
		if route.path.MatchString(path) && route.statuses[strings.ToLower(r.Method)][strconv.Itoa(status)] {
			return true
		}
	}
	return false
}
