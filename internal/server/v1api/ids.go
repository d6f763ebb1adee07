package v1api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/textid"
)

// periodHeader says in answers of every format which period the numbers belong to.
const periodHeader = "Leaf-Period"

const allowIDs = "GET, HEAD, POST, OPTIONS"

// A request is a request for IDs.
type request struct {
	*handler
	http        *http.Request
	caller      *access.Caller
	scheme, key string
}

// serveIDs is the hot path: it does nothing per request that the answer does not need.
func (h *handler) serveIDs(w http.ResponseWriter, r *http.Request, names string) {
	scheme, key, ok := strings.Cut(names, "/")
	if !ok || key == "" || strings.Contains(key, "/") {
		h.noRoute(w, r)
		return
	}
	if r.Method != http.MethodGet && h.answersMethod(w, r, allowIDs) {
		return
	}
	if key, ok = unescape(r, key); !ok || issuer.SchemeOf(scheme).Name != scheme {
		h.fail(w, fmt.Errorf("%w: %q; there are %s", issuer.ErrNoScheme, scheme, strings.Join(issuer.SchemeNames(), ", ")))
		return
	}
	caller, err := h.Caller(r)
	if err == nil {
		q := request{h, r, caller, scheme, key}
		err = q.serve(w)
	}
	if err != nil {
		h.fail(w, err)
	}
}

// serve answers, or returns why it cannot.
func (q *request) serve(w http.ResponseWriter) error {
	var p params
	if q.http.Method != http.MethodGet || q.http.URL.RawQuery != "" {
		var err error
		if p, err = q.read(); err != nil {
			return err
		}
	}
	if q.http.Method == http.MethodHead {
		return q.head(w, p)
	}
	if err := q.caller.Take(q.scheme, q.key, int64(max(p.n, 1))); err != nil {
		return err
	}
	single := p.n == 0 && p.period == ""
	if single && q.Traces == nil { // else a call of the store would not be in the span of this request
		if err := q.one(frontend.NoWait, w, p); !errors.Is(err, frontend.ErrWaits) {
			return err
		}
	}
	var err error
	p.stockless, err = q.IDs.Stockless(q.http.Context(), q.scheme, q.key)
	switch {
	case err != nil:
		return err
	case single && !p.stockless:
		return q.one(q.http.Context(), w, p)
	}
	p.n = max(p.n, 1)
	return q.batch(w, p)
}

// read reads the parameters, for a caller who may take IDs of this tag.
func (q *request) read() (params, error) {
	if err := q.caller.Take(q.scheme, q.key, 0); err != nil {
		return params{}, err
	}
	if q.http.Method == http.MethodPost && hasBody(q.http) {
		return params{}, fmt.Errorf("%w: a body is not read here: put the parameters into the URL, as in ?n=3", leaf.ErrInvalid)
	}
	return q.params()
}

// hasBody reports whether a request has a non-empty body.
func hasBody(r *http.Request) bool {
	if r.ContentLength >= 0 {
		return r.ContentLength > 0
	}
	var first [1]byte
	n, _ := r.Body.Read(first[:])
	return n > 0
}

// one answers with an ID of a tag with a stock.
func (q *request) one(ctx context.Context, w http.ResponseWriter, p params) error {
	var form *textid.Form
	var err error
	if p.form {
		if form, err = q.IDs.Form(ctx, q.scheme, q.key); err != nil {
			return err
		}
	}
	id, err := q.IDs.Next(ctx, q.scheme, q.key)
	if err == nil && form != nil {
		id.Text, err = form.Encode(textid.Number{N: id.Number})
	}
	if err != nil {
		return err
	}
	setType(w, p)
	var buf [64]byte
	text := buf[:0]
	if p.text {
		text = append(id.Append(text), '\n')
	} else {
		text = append(id.Append(append(text, `{"ids":["`...)), "\"]}\n"...)
	}
	_, _ = w.Write(text) // the ID is spent whether it arrives or not
	return nil
}

func (q *request) batch(w http.ResponseWriter, p params) error {
	ids, err := q.IDs.Issue(q.http.Context(), issuer.Request{
		Scheme: q.scheme, Key: q.key, N: p.n, Period: p.period, Stockless: p.stockless,
		Contiguous: p.contiguous, Ranges: p.ranges, Form: p.form,
	})
	if err != nil {
		return err
	}
	setType(w, p)
	end := "]}\n"
	if ids.Period != "" {
		end = `],"period":"` + ids.Period + "\"}\n"
		w.Header().Set(periodHeader, ids.Period)
	}
	switch {
	case p.ranges:
		q.WriteRanges(w, q.http, ids.Ranges, end)
	case p.text:
		q.WriteIDs(w, q.http, ids, "", "\n", "\n")
	default:
		q.WriteIDs(w, q.http, ids, `{"ids":["`, `","`, `"`+end)
	}
	return nil
}

// head answers like a GET, without taking IDs.
func (q *request) head(w http.ResponseWriter, p params) error {
	err := q.IDs.Exists(q.http.Context(), q.scheme, q.key)
	if err == nil && p.form {
		_, err = q.IDs.Form(q.http.Context(), q.scheme, q.key)
	}
	if err != nil {
		return err
	}
	setType(w, p)
	return nil
}

func setType(w http.ResponseWriter, p params) {
	header := w.Header()
	header["Cache-Control"] = frontend.NoStore
	if p.text {
		header["Content-Type"] = textType
	} else {
		header["Content-Type"] = jsonType
	}
}
