package frontend

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
)

// A Problem is an error as RFC 9457 has it.
type Problem struct {
	Type   string `json:"type"` // where the reason is explained
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Reason string `json:"reason"` // see [Kind]
}

// problemTypes is the page that explains every reason.
const problemTypes = "https://github.com/leaf-id/leaf/blob/main/docs/http-api.md#"

// Errors of requests that name nothing that this server has.
var (
	ErrNoRoute = errors.New("no such route")
	ErrMethod  = errors.New("method not allowed")
)

// ProblemOf returns the HTTP form of err, which must not be nil.
func ProblemOf(err error) Problem {
	title, kind := titled(err)
	return Problem{
		Type:   problemTypes + strings.ToLower(kind.Reason),
		Title:  title,
		Status: kind.HTTP,
		Detail: Text(err),
		Reason: kind.Reason,
	}
}

// Values of Content-Type, and of other headers, that many answers share. They must not be
// written to.
var (
	ProblemType = []string{"application/problem+json"}
	NoStore     = []string{"no-store"} // a cached ID would be issued twice
)

// SetAdvice sets the headers that say what to do about err: to show a token, or when to try again.
func SetAdvice(header http.Header, err error) {
	if after := RetryAfter(err); after != "" {
		header.Set("Retry-After", after)
	}
	if KindOf(err).HTTP == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", "Bearer")
	}
}

// WriteProblem answers a request that failed with err.
func WriteProblem(w http.ResponseWriter, err error) {
	header, p := w.Header(), ProblemOf(err)
	SetAdvice(header, err)
	header["Content-Type"] = ProblemType
	header["Cache-Control"] = NoStore
	w.WriteHeader(p.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(p) // a vanished client needs no answer
}
