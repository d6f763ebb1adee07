// Package tinyid serves the routes of Didi's TinyID, for clients that exist: a business type of
// TinyID is a tag here. As in TinyID, the status is 200 even where a request fails.
package tinyid

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

const prefix = "/tinyid/id/"

// A Route is one of TinyID's routes.
type Route struct {
	Path, About string

	serve   func(*handler, *request) error
	simple  bool   // its answers are text
	failing string // precedes the reason in an error
}

// Routes is the table of all routes.
var Routes = []Route{
	{prefix + "nextId", "?bizType=TAG&token=TOKEN&batchSize=N: IDs, in TinyID's JSON", (*handler).nextID, false, "error query segmentId: "},
	{prefix + "nextIdSimple", "the same as text", (*handler).nextID, true, ""},
	{prefix + "nextSegmentId", "?bizType=TAG&token=TOKEN: a range, in TinyID's JSON", (*handler).nextSegment, false, ""},
	{prefix + "nextSegmentIdSimple", "the same as text, for TinyID's Java client", (*handler).nextSegment, true, ""},
}

const allow = "GET, POST, OPTIONS"

// maxBody bounds a form, in bytes.
const maxBody = 16 << 10

// Header values that many answers share. They are never written to.
var (
	jsonType = []string{"application/json;charset=UTF-8"}
	textType = []string{"text/plain;charset=UTF-8"}
)

type handler struct {
	*frontend.Options
	requests *telemetry.Requests
}

// A request is a request for IDs.
type request struct {
	*Route
	w      http.ResponseWriter
	http   *http.Request
	caller *access.Caller
	tag    string
}

// New returns a handler that serves [Routes] and leaves the rest to next.
func New(opts *frontend.Options, next http.Handler) http.Handler {
	h := &handler{opts, opts.Requests.Of(frontend.TinyID)}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, prefix) {
			for i := range Routes {
				if Routes[i].Path == r.URL.Path {
					recorder := h.requests.RecorderOf(r.RemoteAddr)
					arrived := recorder.Now()
					h.serve(&request{Route: &Routes[i], w: w, http: r})
					recorder.Done(arrived, 1)
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

func (h *handler) serve(q *request) {
	q.w.Header()["Cache-Control"] = frontend.NoStore
	switch q.http.Method {
	case http.MethodGet, http.MethodPost:
	case http.MethodOptions:
		q.w.Header().Set("Allow", allow)
		q.w.WriteHeader(http.StatusNoContent)
		return
	default: // HEAD too, which would use up a range that nobody gets
		q.w.Header().Set("Allow", allow)
		h.refuse(q.w, fmt.Errorf("%w: %s; this route has %s", frontend.ErrMethod, q.http.Method, allow))
		return
	}
	q.http.Body = http.MaxBytesReader(q.w, q.http.Body, maxBody)
	if err := q.http.ParseForm(); err != nil {
		h.refuse(q.w, fmt.Errorf("%w: the parameters are malformed, or longer than %d bytes", leaf.ErrInvalid, maxBody))
		return
	}
	q.tag = q.http.Form.Get("bizType")
	err := h.admit(q)
	if err == nil {
		err = q.Route.serve(h, q)
	}
	if err != nil {
		h.fail(q, err)
	}
}

// admit finds the caller by the token among the parameters, or in the header of other routes.
func (h *handler) admit(q *request) (err error) {
	if q.caller, err = h.CallerWith(q.http, q.http.Form.Get("token")); err != nil {
		return err
	}
	return q.caller.Take(issuer.Segment, q.tag, 0)
}

// nextID answers with batchSize IDs. Zero or fewer give an empty answer, as in TinyID.
func (h *handler) nextID(q *request) error {
	n := 1
	if text := q.http.Form.Get("batchSize"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			return malformed{fmt.Errorf("%w: batchSize must be a number", leaf.ErrInvalid)}
		}
	}
	var ids issuer.IDs
	if n > 0 {
		if err := h.IDs.CheckCount(n); err != nil {
			return err
		}
		err := q.caller.Take(issuer.Segment, q.tag, int64(n))
		if err == nil {
			ids, err = h.IDs.Take(q.http.Context(), issuer.Segment, q.tag, n)
		}
		if err != nil {
			return err
		}
	}
	if q.simple {
		q.w.Header()["Content-Type"] = textType
		h.WriteIDs(q.w, q.http, ids, "", ",", "")
		return nil
	}
	q.w.Header()["Content-Type"] = jsonType
	h.WriteIDs(q.w, q.http, ids, `{"data":[`, ",", `],"code":200,"message":""}`)
	return nil
}

// nextSegment answers with a range for a client with a stock of its own: the IDs above currentId up
// to maxId. The client loads the next range when it has reached loadingId. All IDs are ours, so
// that delta is 1 and remainder 0.
func (h *handler) nextSegment(q *request) error {
	r, err := h.lend(q)
	if err != nil {
		return err
	}
	current, last := r.Start-1, r.End-1
	loading := current + r.Len()/5 // TinyID's 20 %
	format, contentType := `{"data":{"maxId":%[3]d,"loadingId":%[2]d,"currentId":%[1]d,"delta":1,"remainder":0},"code":200,"message":""}`, jsonType
	if q.simple {
		format, contentType = "%d,%d,%d,1,0", textType
	}
	q.w.Header()["Content-Type"] = contentType
	fmt.Fprintf(q.w, format, current, loading, last) // the range is spent whether it arrives or not
	return nil
}

// lend takes a range of the tag's step, and charges the caller's limits with it. Its size is not
// known before, so it is charged as one ID first. TinyID has no ID 0.
func (h *handler) lend(q *request) (leaf.Range, error) {
	for {
		if err := q.caller.Take(issuer.Segment, q.tag, 1); err != nil {
			return leaf.Range{}, err
		}
		grant, err := h.IDs.Advance(q.http.Context(), q.tag, 0, "")
		if err != nil {
			q.caller.Refund(issuer.Segment, q.tag, 1)
			return leaf.Range{}, err
		}
		r := grant.Range
		if err := q.caller.Take(issuer.Segment, q.tag, r.Len()-1); err != nil {
			// The first charge stays: the counter may have moved for this call.
			_ = h.IDs.Return(q.http.Context(), q.tag, grant, r.Start) // else they are lost
			return leaf.Range{}, err
		}
		if r.Start = max(r.Start, 1); !r.Empty() {
			return r, nil
		}
	}
}

// A malformed error is about a parameter without a number. TinyID answers 400 for it alone.
type malformed struct{ error }

func (e malformed) Unwrap() error { return e.error }

// Codes of TinyID's errors.
const (
	codeToken  = 5
	codeSystem = 6
)

// A failure is TinyID's JSON of an error.
type failure struct {
	Data    any    `json:"data"` // null
	Code    int    `json:"code"`
	Message string `json:"message"`
}

// fail answers a request that failed.
func (h *handler) fail(q *request, err error) {
	if _, ok := errors.AsType[malformed](err); ok {
		h.refuse(q.w, err)
		return
	}
	h.requests.Failed(frontend.KindOf(err).Reason)
	if q.simple {
		q.w.Header()["Content-Type"] = textType
		q.w.WriteHeader(http.StatusOK) // without a body, which tells the client
		return
	}
	f := failure{Code: codeSystem, Message: q.failing + frontend.Text(err)}
	switch {
	case errors.Is(err, access.ErrUnauthenticated), errors.Is(err, access.ErrForbidden):
		f = failure{Code: codeToken, Message: "token is error"}
	case errors.Is(err, leaf.ErrUnknownTag), errors.Is(err, issuer.ErrBadKey):
		f.Message = q.failing + "can not find biztype:" + q.tag
	}
	q.w.Header()["Content-Type"] = jsonType
	_ = json.NewEncoder(q.w).Encode(f) // a vanished client needs no answer
}

// refuse answers a request that TinyID refuses before it looks for IDs.
func (h *handler) refuse(w http.ResponseWriter, err error) {
	h.requests.Failed(frontend.KindOf(err).Reason)
	frontend.WriteProblem(w, err)
}
