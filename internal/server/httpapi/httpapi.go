// Package httpapi is the plain HTTP front end: Java Leaf's own routes as Java Leaf
// answers them, batches, and the routes for probes. openapi.yaml in package api
// describes them.
package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/leaf-id/leaf/api"
	"github.com/leaf-id/leaf/internal/issuer"
)

// Options configures the routes.
type Options struct {
	// Tags is what /cache and /db show; nil: the segment scheme is not enabled.
	Tags *issuer.Tags

	// Ready says why no requests should be sent to this server, nil if they should.
	// A nil func means always ready.
	Ready func() error
}

type handler struct {
	ids   *issuer.Issuer
	tags  *issuer.Tags
	ready func() error
}

// A route is a line of the one table of routes.
type route struct {
	pattern string // of the mux
	path    string // as people write it
	about   string
	serve   http.HandlerFunc
}

// New adds the routes, and the answer for unknown paths, to mux and returns the handler
// that serves all of mux. Segment IDs go past mux, whose general matching costs twice
// what it takes to make and write an ID.
func New(mux *http.ServeMux, ids *issuer.Issuer, opts *Options) http.Handler {
	if opts == nil {
		opts = new(Options)
	}
	h := &handler{ids: ids, tags: opts.Tags, ready: opts.Ready}
	for _, r := range h.routes() {
		mux.HandleFunc(r.pattern, r.serve)
	}
	mux.HandleFunc("/", h.notFound)
	segments := h.idsRoute(issuer.Segment, segmentPrefix)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, segmentPrefix) {
			segments(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func (h *handler) routes() []route {
	return []route{
		{segmentPrefix, segmentPrefix + "{key}", "one ID; ?n=100 for a batch", h.idsRoute(issuer.Segment, segmentPrefix)},
		{snowflakePrefix, snowflakePrefix + "{key}", "one ID; ?n=100 for a batch", h.idsRoute("snowflake", snowflakePrefix)},
		{"/cache", "/cache", "what this server holds in memory", get(h.cache)},
		{"/db", "/db", "the tags in the store", get(h.db)},
		{"/healthz", "/healthz", "200 while the process lives", get(healthz)},
		{"/readyz", "/readyz", "200 when requests can be served; ?verbose says why not", get(h.readyz)},
		{"/openapi.yaml", "/openapi.yaml", "this API, described for machines", get(openAPI)},
		{"/{$}", "/", "this page", get(h.index)},
	}
}

// get serves GET and HEAD with next and answers all other methods itself.
func get(next http.HandlerFunc) http.HandlerFunc {
	const allow = "GET, HEAD, OPTIONS"
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			next(w, r)
		case http.MethodOptions:
			w.Header().Set("Allow", allow)
		default:
			methodNotAllowed(w, r, allow)
		}
	}
}

func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = io.WriteString(w, api.OpenAPI) // a client that has gone needs no answer
}

func (h *handler) index(w http.ResponseWriter, _ *http.Request) {
	w.Header()["Content-Type"] = plainText
	fmt.Fprint(w, "Leaf hands out unique IDs.\n\n")
	for _, r := range h.routes() {
		fmt.Fprintf(w, "%-30s %s\n", r.path, r.about)
	}
	fmt.Fprint(w, "\nConnect and gRPC: leaf.v1.LeafService, leaf.v1.AdminService\n")
}
