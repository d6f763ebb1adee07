// Package v1api is the HTTP API for new clients: /v1/ids/{scheme}/{key}, /v1/decode/{id} and
// /v1/workers/leases. IDs are strings in its JSON, since JavaScript's numbers lose digits;
// errors are those of RFC 9457, with a reason that a program can branch on. openapi.yaml
// in package api describes it.
package v1api

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// What precedes the parameters in a path.
const (
	prefix       = "/v1/"
	idsPrefix    = "/v1/ids/"
	decodePrefix = "/v1/decode/"
)

// Routes are the paths of the description, each with its purpose.
var Routes = [][2]string{
	{idsPrefix + "{scheme}/{key}", "one ID; ?n=100 for a batch, ?ranges=1, ?contiguous=1, ?period=DAY, ?form=1, ?format=text"},
	{frontend.LeasesPath, "POST {\"pool\":\"NAME\"}: a lease of a worker ID, for a program with a generator of its own"},
	{frontend.LeasesPath + "/{lease}", "POST renews the lease, DELETE with ?used=MS releases it"},
	{decodePrefix + "{id}", "what an ID made of the time says; ?layout=NAME"},
}

// Header values that many answers share. They are never written to.
var (
	jsonType = []string{"application/json"}
	textType = []string{"text/plain; charset=utf-8"}
)

type handler struct {
	*frontend.Options
	next     http.Handler
	requests *telemetry.Requests
}

// New returns a handler that serves the paths below /v1/ and leaves the rest to next.
func New(opts *frontend.Options, next http.Handler) http.Handler {
	return &handler{opts, next, opts.Requests.Of(frontend.V1)}
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, prefix) {
		h.next.ServeHTTP(w, r)
		return
	}
	recorder := h.requests.RecorderOf(r.RemoteAddr)
	arrived := recorder.Now()
	h.serve(w, r)
	recorder.Done(arrived, 1)
}

func (h *handler) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if r.URL.RawPath != "" { // something is encoded that would mean something else if it were not
		path = r.URL.EscapedPath()
	}
	if names, ok := strings.CutPrefix(path, idsPrefix); ok {
		h.serveIDs(w, r, names)
		return
	}
	if id, ok := strings.CutPrefix(path, frontend.LeasesPath); ok && (id == "" || id[0] == '/') {
		h.serveLeases(w, r, id)
		return
	}
	if id, ok := strings.CutPrefix(path, decodePrefix); ok && id != "" && !strings.Contains(id, "/") {
		h.serveDecode(w, r, id)
		return
	}
	h.noRoute(w, r)
}

func (h *handler) noRoute(w http.ResponseWriter, r *http.Request) {
	var paths []string
	for _, route := range Routes {
		paths = append(paths, route[0])
	}
	h.fail(w, fmt.Errorf("%w: %s; there are %s", frontend.ErrNoRoute, r.URL.EscapedPath(), strings.Join(paths, ", ")))
}

// fail answers a request that failed with err.
func (h *handler) fail(w http.ResponseWriter, err error) {
	h.requests.Failed(frontend.KindOf(err).Reason)
	frontend.WriteProblem(w, err)
}

// unescape returns the text of a segment of r's path.
func unescape(r *http.Request, segment string) (string, bool) {
	if r.URL.RawPath == "" {
		return segment, true
	}
	text, err := url.PathUnescape(segment)
	return text, err == nil
}

// answersMethod answers a request whose method is OPTIONS, or not in allow, and reports whether it
// did.
func (h *handler) answersMethod(w http.ResponseWriter, r *http.Request, allow string) bool {
	if r.Method == http.MethodOptions {
		w.Header().Set("Allow", allow)
		w.WriteHeader(http.StatusNoContent)
		return true
	}
	for method := range strings.SplitSeq(allow, ", ") {
		if r.Method == method {
			return false
		}
	}
	w.Header().Set("Allow", allow)
	h.fail(w, fmt.Errorf("%w: %s; this route has %s", frontend.ErrMethod, r.Method, allow))
	return true
}
