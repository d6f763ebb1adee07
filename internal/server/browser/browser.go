// Package browser serves browsers, and defends a server against pages of other sites: with security
// headers on every answer that a browser can show, CORS for the configured origins, and a refusal
// of IDs for all other pages.
package browser

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	connectcors "connectrpc.com/cors"
	"github.com/rs/cors"

	"github.com/leaf-id/leaf/api/leaf/v1/leafv1connect"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// Values of the security headers. Nobody writes to them. A page with a style of its own overrules
// the policy.
var (
	noSniff    = []string{"nosniff"}
	deny       = []string{"DENY"}
	noReferrer = []string{"no-referrer"}
	sameOrigin = []string{"same-origin"}
	nothing    = []string{"default-src 'none'; frame-ancestors 'none'"}
)

// preflightAge is the time in seconds for which a browser may remember a preflight's answer.
const preflightAge = 7200

// shared are the paths for pages of the configured origins. They do not include administration.
var shared = []string{"/v1/", "/" + leafv1connect.LeafServiceName + "/", "/openapi.yaml", "/proto/"}

// idPaths are the beginnings of paths that hand out IDs, with any slashes, in answer to requests
// that any page can make a browser send.
var idPaths = []string{"/v1/", "/api/", "/tinyid/", "/" + leafv1connect.LeafServiceName + "/"}

// A Handler serves what browsers may have.
type Handler struct {
	// CheckHost reports why a browser's request for IDs must not be answered: the page
	// reaches this machine by a name of its own. nil: every host will do.
	CheckHost func(*http.Request) error

	next http.Handler
	cors atomic.Pointer[cors.Cors] // nil: no origins are configured
}

// New returns a Handler that serves with next what browsers may have; see [Handler.SetOrigins].
func New(origins []string, next http.Handler) *Handler {
	h := &Handler{next: next}
	h.SetOrigins(origins)
	return h
}

// SetOrigins sets the origins whose pages may read answers: an origin is "*", scheme://host or
// scheme://host:port, and one * in it matches any text.
func (h *Handler) SetOrigins(origins []string) {
	if len(origins) == 0 {
		h.cors.Store(nil)
		return
	}
	h.cors.Store(cors.New(cors.Options{
		AllowedOrigins: origins,
		AllowedMethods: append(connectcors.AllowedMethods(), http.MethodHead),
		AllowedHeaders: append(connectcors.AllowedHeaders(), "Authorization"),
		ExposedHeaders: append(connectcors.ExposedHeaders(), "Retry-After", "WWW-Authenticate"),
		MaxAge:         preflightAge,
	}))
}

// Shares reports whether pages of some other origin may read answers.
func (h *Handler) Shares() bool { return h.cors.Load() != nil }

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isBrowser(r) || !begins(r.URL.Path, idPaths) {
		secure(w.Header())
	}
	if site := r.Header["Sec-Fetch-Site"]; len(site) > 0 && h.foreign(r, site[0]) {
		frontend.WriteProblem(w, fmt.Errorf("%w: a page of another site asks: its origin is not configured", access.ErrForbidden))
		return
	}
	if h.CheckHost != nil && isBrowser(r) && begins(r.URL.Path, idPaths) {
		if err := h.CheckHost(r); err != nil {
			frontend.WriteProblem(w, err)
			return
		}
	}
	if cors := h.cors.Load(); cors != nil && begins(r.URL.Path, shared) {
		cors.ServeHTTP(w, r, h.next.ServeHTTP)
		return
	}
	h.next.ServeHTTP(w, r)
}

// isBrowser reports whether r may come from a browser: all of them name themselves so. An ID
// for any other program goes without the security headers, which cost a tenth of it.
func isBrowser(r *http.Request) bool {
	agent := r.Header["User-Agent"]
	return len(agent) > 0 && strings.HasPrefix(agent[0], "Mozilla/") || len(r.Header["Sec-Fetch-Site"]) > 0
}

// secure sets the security headers.
func secure(header http.Header) {
	header["X-Content-Type-Options"] = noSniff
	header["X-Frame-Options"] = deny
	header["Referrer-Policy"] = noReferrer
	header["Cross-Origin-Resource-Policy"] = sameOrigin
	header["Content-Security-Policy"] = nothing
}

// foreign reports whether a page of another site, whose origin is not configured, has a
// browser ask for IDs. A link that a person follows is not that.
func (h *Handler) foreign(r *http.Request, site string) bool {
	if site != "cross-site" && site != "same-site" || !begins(r.URL.Path, idPaths) {
		return false
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" && r.Method == http.MethodGet {
		return false
	}
	cors := h.cors.Load()
	return cors == nil || !cors.OriginAllowed(r)
}

// begins reports whether a path begins with one of the prefixes. Slashes at its front count as
// one, as they do for the routes of IDs.
func begins(path string, prefixes []string) bool {
	for strings.HasPrefix(path, "//") {
		path = path[1:]
	}
	for _, prefix := range prefixes {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
