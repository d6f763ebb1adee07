package httpapi

import (
	"net/http"
	"net/http/pprof"
)

const pprofPath = "/debug/pprof/"

// profiles serves the profiles of package pprof, but not the command line, on which the URL of a
// store may show its password.
func profiles(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case pprofPath + "profile":
		pprof.Profile(w, r)
	case pprofPath + "symbol":
		pprof.Symbol(w, r)
	case pprofPath + "trace":
		pprof.Trace(w, r)
	default:
		pprof.Index(w, r)
	}
}
