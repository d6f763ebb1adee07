// Package httpapi is the plain HTTP front end: Java Leaf's own routes as Java Leaf answers them,
// batches, and the routes for probes. openapi.yaml in package api describes them.
package httpapi

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/leaf-id/leaf/api"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/console"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/tinyid"
	"github.com/leaf-id/leaf/internal/server/v1api"
	"github.com/leaf-id/leaf/internal/telemetry"
)

type handler struct {
	*frontend.Options
	requests *telemetry.Requests
}

// A route is a line of the one table of routes.
type route struct {
	pattern string // of the mux
	path    string // as people write it
	about   string
	serve   http.HandlerFunc
	java    bool // Java Leaf has it, and serves it with a slash behind as well
}

// New adds the routes, and the answer for unknown paths, to mux and returns the handler for all of
// mux and packages v1api and tinyid. Requests for IDs bypass mux, whose general matching costs twice as much as
// making and writing an ID.
func New(mux *http.ServeMux, opts *frontend.Options) http.Handler {
	h := &handler{opts, opts.Requests.Of(frontend.HTTP)}
	for _, r := range h.routes() {
		mux.HandleFunc(r.pattern, r.serve)
		if r.java {
			mux.HandleFunc(r.pattern+"/{$}", r.serve)
		}
	}
	mux.HandleFunc("/", h.notFound)
	rt := &router{handler: h, mux: mux, routes: h.idsRoutes()}
	rt.all = v1api.New(opts, tinyid.New(opts, rt))
	return rt.all
}

// A router serves all routes but those of packages v1api and tinyid.
type router struct {
	*handler
	mux    *http.ServeMux
	routes []idsRoute
	all    http.Handler // those too
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for i := range rt.routes {
		if key, ok := parseKey(r.URL, rt.routes[i].Path); ok {
			recorder := rt.requests.RecorderOf(r.RemoteAddr)
			arrived := recorder.Now()
			rt.routes[i].serve(w, r, key)
			recorder.Done(arrived, 1)
			return
		}
	}
	switch {
	case strings.Contains(r.URL.EscapedPath(), "//"):
		rt.all.ServeHTTP(w, singleSlashes(r))
	case !isClean(r.URL.Path):
		rt.notFound(w, r)
	default:
		rt.mux.ServeHTTP(w, r)
	}
}

// singleSlashes returns r with single slashes in its path: Java Leaf serves both alike, and a base
// URL often ends in one. An encoded slash does not count.
func singleSlashes(r *http.Request) *http.Request {
	path := r.URL.EscapedPath()
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	single, u := *r, *r.URL
	u.Path, _ = url.PathUnescape(path) // it was unescaped before
	u.RawPath = path
	single.URL = &u
	return &single
}

// isClean reports whether mux serves path as it is: others it redirects to the path
// that they might mean.
func isClean(p string) bool {
	clean := path.Clean(p)
	return p == clean || clean != "/" && p == clean+"/"
}

func (h *handler) routes() []route {
	return []route{
		{decodePath, decodePath, "?snowflakeId=N: what an ID of that scheme says", javaPage(h.admit(access.Take|access.Read, h.decodeSnowflake)), true},
		{uidParsePrefix, uidParsePrefix + "{uid}", "what an ID of that scheme says; ?layout=NAME", get(h.admit(access.Take|access.Read, h.parseUID)), false},
		{"/cache", "/cache", "what this server holds in memory", javaPage(h.admit(access.Read, h.cache)), true},
		{"/db", "/db", "the tags in the store", javaPage(h.admit(access.Read, h.db)), true},
		{"/healthz", "/healthz", "200 while the process lives", get(healthz), false},
		{"/readyz", "/readyz", "200 when requests can be served; ?scheme=NAME for one scheme, ?verbose says why not", get(h.readyz), false},
		{"/metrics", "/metrics", "figures for Prometheus", get(h.admit(access.Read, h.metrics)), false},
		{pprofPath, pprofPath, "profiles of the process, for administrators", get(h.admit(access.Admin, profiles)), false},
		{"/openapi.yaml", "/openapi.yaml", "this API, described for machines", get(openAPI), false},
		{protoPath, protoPath, "leaf.proto, admin.proto or worker.proto: the services of gRPC and Connect", get(h.proto), false},
		{"/{$}", "/", "the console for browsers, this page for others", get(h.index), false},
	}
}

// get serves GET and HEAD with next and answers all other methods itself.
func get(next http.HandlerFunc) http.HandlerFunc { return only(readMethods, next) }

// javaPage serves the methods that Java Leaf serves, which are most, with next.
func javaPage(next http.HandlerFunc) http.HandlerFunc { return only(javaMethods, next) }

func only(methods []string, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if allowed(w, r, methods) {
			next(w, r)
		}
	}
}

var (
	readMethods = []string{"GET", "HEAD", "OPTIONS"}
	javaMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}
)

// allowed reports whether a request has one of the methods. It answers others, and OPTIONS, itself.
func allowed(w http.ResponseWriter, r *http.Request, methods []string) bool {
	options := r.Method == http.MethodOptions
	if !options && slices.Contains(methods, r.Method) {
		return true
	}
	w.Header().Set("Allow", strings.Join(methods, ", "))
	if !options {
		writeError(w, r, errorBody{Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("Request method '%s' not supported", r.Method)})
	}
	return false
}

func (h *handler) admit(rights access.Right, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := h.Admit(r, rights); err != nil {
			h.fail(w, r, err)
			return
		}
		next(w, r)
	}
}

func openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = io.WriteString(w, api.OpenAPI) // a vanished client needs no answer
}

const protoPath = "/proto/leaf/v1/{file}"

func (h *handler) proto(w http.ResponseWriter, r *http.Request) {
	text, err := api.Protos.ReadFile("leaf/v1/" + r.PathValue("file"))
	if err != nil {
		h.notFound(w, r)
		return
	}
	w.Header()["Content-Type"] = plainText
	_, _ = w.Write(text) // a vanished client needs no answer
}

func (h *handler) index(w http.ResponseWriter, r *http.Request) {
	if negotiate(r.Header["Accept"]) == asHTML {
		console.Page(w, r)
		return
	}
	w.Header()["Content-Type"] = plainText
	fmt.Fprint(w, "Leaf hands out unique IDs.\n\n")
	for _, r := range v1api.Routes {
		fmt.Fprintf(w, "%-30s %s\n", r[0], r[1])
	}
	fmt.Fprint(w, "\nJava Leaf's routes, and others like them:\n\n")
	for _, r := range h.idsRoutes() {
		fmt.Fprintf(w, "%-30s one ID; ?n=100 for a batch\n", r.Path+"{key}")
	}
	for _, r := range h.routes() {
		fmt.Fprintf(w, "%-30s %s\n", r.path, r.about)
	}
	fmt.Fprint(w, "\nTinyID's routes:\n\n")
	for _, r := range tinyid.Routes {
		fmt.Fprintf(w, "%-30s %s\n", r.Path, r.About)
	}
	fmt.Fprint(w, "\nConnect and gRPC, with reflection and health checks: leaf.v1.LeafService, leaf.v1.AdminService\n")
}
