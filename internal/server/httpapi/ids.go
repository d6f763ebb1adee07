package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
)

// An idsRoute is a route whose answers are IDs.
type idsRoute struct {
	*handler
	issuer.Scheme
}

func (h *handler) idsRoutes() (routes []idsRoute) {
	for _, s := range issuer.Schemes {
		routes = append(routes, idsRoute{h, s})
	}
	return routes
}

// noSniff is a header value that many responses share. It is never written to.
var noSniff = []string{"nosniff"}

// serve is the hot path: it does nothing per request that the answer does not need.
func (i *idsRoute) serve(w http.ResponseWriter, r *http.Request, key string) {
	w.Header()["Cache-Control"] = frontend.NoStore
	if r.Method != http.MethodGet && !allowed(w, r, javaMethods) { // a GET skips the list
		return
	}
	caller, err := i.Caller(r)
	if err == nil {
		key = i.javaKey(r.Context(), caller, key)
		err = caller.Take(i.Name, key, 0)
	}
	switch {
	case err != nil:
		i.fail(w, r, err)
	case r.Method == http.MethodHead:
		i.head(w, r, key)
	case r.URL.RawQuery != "":
		i.query(w, r, caller, key)
	default:
		i.one(w, r, caller, key)
	}
}

// javaKey returns the key that a request means. Java Leaf cuts a tag's name at its last dot. Its
// route here serves the cut name, too, if only that is a tag.
func (i *idsRoute) javaKey(ctx context.Context, caller *access.Caller, key string) string {
	dot := strings.LastIndexByte(key, '.')
	if dot < 1 || !i.Java || !i.Scheme.Tags {
		return key
	}
	cut := key[:dot]
	if caller.Take(i.Name, cut, 0) != nil { // no lookups for others
		return key
	}
	err := i.IDs.Exists(ctx, i.Name, key)
	noTag := errors.Is(err, leaf.ErrUnknownTag) || errors.Is(err, issuer.ErrBadKey)
	if !noTag || i.IDs.Exists(ctx, i.Name, cut) != nil {
		return key
	}
	if i.CutKey != nil {
		i.CutKey(key, cut)
	}
	return cut
}

func (i *idsRoute) one(w http.ResponseWriter, r *http.Request, caller *access.Caller, key string) {
	if err := caller.Take(i.Name, key, 1); err != nil {
		i.fail(w, r, err)
		return
	}
	id, err := i.IDs.Next(r.Context(), i.Name, key)
	if err != nil {
		i.fail(w, r, err)
		return
	}
	f := negotiate(r.Header["Accept"])
	w.Header()["Content-Type"] = contentTypes[f]
	var text [40]byte
	_, _ = w.Write(id.Append(text[:0])) // the ID is spent whether it arrives or not
}

// head answers like a GET, without taking an ID.
func (i *idsRoute) head(w http.ResponseWriter, r *http.Request, key string) {
	_, batch, err := i.count(r.URL)
	if err == nil {
		err = i.IDs.Exists(r.Context(), i.Name, key)
	}
	if err != nil {
		i.fail(w, r, err)
		return
	}
	w.Header()["Content-Type"] = contentTypes[batchFormat(r, batch)]
}

func (i *idsRoute) query(w http.ResponseWriter, r *http.Request, caller *access.Caller, key string) {
	n, batch, err := i.count(r.URL)
	switch {
	case err != nil:
		i.fail(w, r, err)
	case !batch:
		i.one(w, r, caller, key)
	default:
		i.batch(w, r, caller, key, n)
	}
}

func (i *idsRoute) batch(w http.ResponseWriter, r *http.Request, caller *access.Caller, key string, n int) {
	if err := caller.Take(i.Name, key, int64(n)); err != nil {
		i.fail(w, r, err)
		return
	}
	ids, err := i.IDs.Take(r.Context(), i.Name, key, n)
	if err != nil {
		i.fail(w, r, err)
		return
	}
	f := batchFormat(r, true)
	w.Header()["Content-Type"] = contentTypes[f]
	if f == asJSON {
		i.WriteIDs(w, r, ids, `["`, `","`, `"]`)
	} else {
		i.WriteIDs(w, r, ids, "", "\n", "\n")
	}
}

// batchFormat is the format of the answer: a batch has no HTML form.
func batchFormat(r *http.Request, batch bool) format {
	f := negotiate(r.Header["Accept"])
	if batch && f == asHTML {
		return asText
	}
	return f
}

// count reads n from the query; batch says whether it is there. Without an n the
// parameters of Java Leaf's routes mean nothing, as there.
func (i *idsRoute) count(u *url.URL) (n int, batch bool, err error) {
	if u.RawQuery == "" {
		return 0, false, nil
	}
	if i.Java {
		if query, err := url.ParseQuery(u.RawQuery); err == nil && !query.Has("n") {
			return 0, false, nil
		}
	}
	query, err := frontend.ParseQuery(u.RawQuery, "n")
	if err != nil || !query.Has("n") {
		return 0, false, err
	}
	n, err = frontend.Count(query, i.IDs.MaxBatch())
	return n, true, err
}
