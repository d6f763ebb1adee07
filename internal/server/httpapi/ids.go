package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
)

const (
	segmentPrefix   = "/api/segment/get/"
	snowflakePrefix = "/api/snowflake/get/"
)

// Header values that many responses share. They are never written to.
var (
	noStore = []string{"no-store"} // a cached ID would be issued twice
	noSniff = []string{"nosniff"}
)

// idsRoute serves {prefix}{key}. It is the hot path: it does nothing per request that the
// answer does not need.
func (h *handler) idsRoute(scheme, prefix string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, ok := parseKey(r.URL, prefix)
		if !ok {
			h.notFound(w, r)
			return
		}
		w.Header()["Cache-Control"] = noStore
		switch r.Method {
		case http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		case http.MethodHead:
			h.idsHead(w, r, scheme, key)
			return
		case http.MethodOptions:
			w.Header().Set("Allow", allowIDs)
			return
		default:
			methodNotAllowed(w, r, allowIDs)
			return
		}
		if r.URL.RawQuery != "" {
			h.idsQuery(w, r, scheme, key)
			return
		}
		h.idsOne(w, r, scheme, key)
	}
}

const allowIDs = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

func (h *handler) idsOne(w http.ResponseWriter, r *http.Request, scheme, key string) {
	id, err := h.ids.Next(r.Context(), scheme, key)
	if err != nil {
		h.idsError(w, r, scheme, err)
		return
	}
	w.Header()["Content-Type"] = contentTypes[negotiate(r.Header["Accept"])]
	var digits [20]byte
	_, _ = w.Write(strconv.AppendInt(digits[:0], id, 10)) // the ID is spent whether it arrives or not
}

// idsHead answers what a GET would, without the ID, which it does not consume.
func (h *handler) idsHead(w http.ResponseWriter, r *http.Request, scheme, key string) {
	err := h.ids.Check(scheme, key)
	n, batch, queryErr := h.count(r.URL)
	if err == nil {
		err = queryErr
	}
	if err == nil && batch {
		err = h.ids.CheckCount(n)
	}
	if err != nil {
		h.idsError(w, r, scheme, err)
		return
	}
	w.Header()["Content-Type"] = contentTypes[batchFormat(r, batch)]
}

func (h *handler) idsQuery(w http.ResponseWriter, r *http.Request, scheme, key string) {
	n, batch, err := h.count(r.URL)
	if err != nil {
		h.idsError(w, r, scheme, err)
		return
	}
	if !batch {
		h.idsOne(w, r, scheme, key)
		return
	}
	ranges, err := h.ids.Take(r.Context(), scheme, key, nil, n)
	if err != nil {
		h.idsError(w, r, scheme, err)
		return
	}
	f := batchFormat(r, true)
	w.Header()["Content-Type"] = contentTypes[f]
	if f == asJSON {
		writeBatch(w, ranges, `["`, `","`, `"]`)
	} else {
		writeBatch(w, ranges, "", "\n", "\n")
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

// count reads n from the query; batch says whether it is there.
func (h *handler) count(u *url.URL) (n int, batch bool, err error) {
	if u.RawQuery == "" {
		return 0, false, nil
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return 0, false, fmt.Errorf("%w: the query string is malformed", leaf.ErrInvalid)
	}
	values := query["n"]
	if len(values) == 0 {
		return 0, false, nil
	}
	n, ok := parseCount(values[0])
	if !ok || len(values) > 1 {
		return 0, true, fmt.Errorf("%w: n must be a number from 1 to %d, given once", leaf.ErrInvalid, h.ids.MaxBatch())
	}
	return n, true, nil
}

// parseCount reads a number written in digits alone.
func parseCount(text string) (int, bool) {
	if strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

// writeBatch writes the IDs in pieces, so that memory does not grow with their number.
func writeBatch(w http.ResponseWriter, ranges []leaf.Range, before, between, after string) {
	const piece, longest = 4096, 32 // an ID and what stands around it fit in longest
	buf := append(make([]byte, 0, piece), before...)
	first := true
	for _, r := range ranges {
		for id := r.Start; id < r.End; id++ {
			if !first {
				buf = append(buf, between...)
			}
			first = false
			buf = strconv.AppendInt(buf, id, 10)
			if len(buf) > piece-longest {
				if _, err := w.Write(buf); err != nil {
					return
				}
				buf = buf[:0]
			}
		}
	}
	_, _ = w.Write(append(buf, after...)) // the IDs are spent whether they arrive or not
}
