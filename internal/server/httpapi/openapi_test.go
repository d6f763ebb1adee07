package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/leaf-id/leaf/api"
	"github.com/leaf-id/leaf/segment"
)

// described returns the methods of each path in the description, in capitals and sorted.
func described(t *testing.T) map[string][]string {
	t.Helper()
	var doc struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal([]byte(api.OpenAPI), &doc); err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]string)
	for path, operations := range doc.Paths {
		for method := range operations {
			all[path] = append(all[path], strings.ToUpper(method))
		}
		slices.Sort(all[path])
	}
	return all
}

// served returns the methods of each path that the index lists, as OPTIONS names them.
func served(h http.Handler) map[string][]string {
	all := make(map[string][]string)
	_, index := get(h, "/")
	for line := range strings.Lines(index) {
		if !strings.HasPrefix(line, "/") {
			continue
		}
		path := strings.Fields(line)[0]
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodOptions, example.Replace(path), nil))
		for method := range strings.SplitSeq(w.Header().Get("Allow"), ", ") {
			if method != http.MethodOptions {
				all[path] = append(all[path], method)
			}
		}
		slices.Sort(all[path])
	}
	return all
}

// example puts an example in the place of each parameter of a path.
var example = strings.NewReplacer("{key}", "k", "{scheme}", "segment", "{id}", "1", "{uid}", "1", "{file}", "leaf.proto")

// The routes, their listing and their description are the same, method by method, and each
// is served.
func TestOpenAPI(t *testing.T) {
	h, _ := newReal(t, newStore(t, segment.Tag{Name: "k", MaxID: 1, Step: 10}), nil)
	if res, body := get(h, "/openapi.yaml"); body != api.OpenAPI || res.Header.Get("Content-Type") != "application/yaml" {
		t.Fatalf("%d %v", res.StatusCode, res.Header)
	}
	want := described(t)
	if diff := cmp.Diff(want, served(h)); diff != "" {
		t.Errorf("described (-) and served (+) differ: %s", diff)
	}
	for path, methods := range want {
		for _, method := range methods {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(method, example.Replace(path), nil))
			if w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
	}
}
