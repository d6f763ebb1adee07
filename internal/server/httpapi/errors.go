package httpapi

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
	"net/http"
	"time"

	"github.com/leaf-id/leaf/internal/server/frontend"
)

// Names of the exceptions in Java Leaf's error bodies.
const (
	leafServerException      = "com.sankuai.inf.leaf.server.exception.LeafServerException"
	illegalArgumentException = "java.lang.IllegalArgumentException"

	missingParameterException = "org.springframework.web.bind.MissingServletRequestParameterException"
)

// Numbers in Java Leaf's error text; package frontend has the others.
const (
	javaNotInitialised = -1
	javaExhausted      = -3
)

// An errorBody is Java Leaf's JSON error, whose clients read it, with one field more at its end.
type errorBody struct {
	Timestamp int64  `json:"timestamp"` // milliseconds since 1970
	Status    int    `json:"status"`
	Error     string `json:"error"`
	Exception string `json:"exception,omitempty"`
	Message   string `json:"message"`
	Path      string `json:"path"`
	Detail    string `json:"detail,omitempty"` // what went wrong, in our own words
}

// fail answers a request for IDs that failed: as Java Leaf does, with status 500 and a
// number in the message, where Java Leaf has the route and a number for err.
func (i *idsRoute) fail(w http.ResponseWriter, r *http.Request, err error) {
	kind := frontend.KindOf(err)
	i.requests.Failed(kind.Reason)
	if !i.Java || kind.Java == 0 {
		i.handler.fail(w, r, err)
		return
	}
	frontend.SetAdvice(w.Header(), err)
	code := kind.Java
	if i.Scheme.Tags && code == javaExhausted && i.StoreSilent() {
		code = javaNotInitialised
	}
	writeError(w, r, errorBody{
		Status:    http.StatusInternalServerError,
		Exception: leafServerException,
		Message:   fmt.Sprintf("Result{id=%d, status=EXCEPTION}", code),
		Detail:    frontend.Text(err),
	})
}

// fail answers a request that failed, where Java Leaf has no answer of its own.
func (h *handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	frontend.SetAdvice(w.Header(), err)
	writeError(w, r, errorBody{Status: frontend.KindOf(err).HTTP, Message: frontend.Text(err)})
}

func (h *handler) notFound(w http.ResponseWriter, r *http.Request) {
	writeError(w, r, errorBody{Status: http.StatusNotFound, Message: "No message available"})
}

// segmentOff answers the two pages that need the segment scheme as Java Leaf does.
func segmentOff(w http.ResponseWriter, r *http.Request) {
	writeError(w, r, errorBody{
		Status:    http.StatusInternalServerError,
		Exception: illegalArgumentException,
		Message:   "You should config leaf.segment.enable=true first",
	})
}

// writeError completes body and writes it as JSON, or as the page that Java Leaf shows to browsers.
func writeError(w http.ResponseWriter, r *http.Request, body errorBody) {
	now := time.Now()
	body.Timestamp = now.UnixMilli()
	body.Error = cmp.Or(http.StatusText(body.Status), "Client Closed Request")
	body.Path = r.URL.EscapedPath()
	w.Header()["Cache-Control"] = frontend.NoStore
	w.Header()["X-Content-Type-Options"] = noSniff
	text, contentType := jsonLine(body), jsonText // not escaped: browsers must not guess the content type
	if negotiate(r.Header["Accept"]) == asHTML {
		text, contentType = htmlError(body, now), htmlText
	}
	w.Header()["Content-Type"] = contentType
	w.WriteHeader(body.Status)
	_, _ = w.Write(text) // a vanished client needs no answer
}

func htmlError(body errorBody, now time.Time) []byte {
	var buf bytes.Buffer
	fmt.Fprintf(&buf, "<html><body><h1>Whitelabel Error Page</h1>"+
		"<p>This application has no explicit mapping for /error, so you are seeing this as a fallback.</p>"+
		"<div id='created'>%s</div><div>There was an unexpected error (type=%s, status=%d).</div><div>%s</div>",
		now.Format("Mon Jan 02 15:04:05 MST 2006"), html.EscapeString(body.Error), body.Status, html.EscapeString(body.Message))
	if body.Detail != "" {
		fmt.Fprintf(&buf, "<div>%s</div>", html.EscapeString(body.Detail))
	}
	buf.WriteString("</body></html>")
	return buf.Bytes()
}
