package rpcapi

import (
	"net/http"

	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// withRoute has answers say which servers the IDs come through.
func withRoute(opts *frontend.Options, next http.Handler) http.Handler {
	if opts.Route == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(hops.Route, hops.Format(opts.Route()))
		next.ServeHTTP(w, r)
	})
}

// withVia takes up which servers a call came through, for the one that it is passed on to.
func withVia(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if via := r.Header.Get(hops.Via); via != "" {
			r = r.WithContext(hops.With(r.Context(), hops.Parse(via)))
		}
		next.ServeHTTP(w, r)
	})
}
