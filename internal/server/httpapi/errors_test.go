package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/segment"
)

// In a bubble the time is midnight of 2000-01-01.
const (
	bubbleTime = `{"timestamp":946684800000,`
	javaError  = bubbleTime + `"status":500,"error":"Internal Server Error","exception":"com.sankuai.inf.leaf.server.exception.LeafServerException",` +
		`"message":"Result{id=%d, status=EXCEPTION}","path":"/api/segment/get/k","detail":%q}`
)

func TestJavaErrors(t *testing.T) {
	tests := []struct {
		err        error
		code       int
		retryAfter string
	}{
		{leaf.ErrUnknownTag, -2, ""},
		{leaf.ErrExhausted, -3, "1"},
		{leaf.ErrOverflow, -3, ""},
		{errors.New("connection refused"), -3, ""},
	}
	for _, tt := range tests {
		for _, target := range []string{"/api/segment/get/k", "/api/segment/get/k?n=2"} {
			synctest.Test(t, func(t *testing.T) {
				h, source := newFake()
				source.err = fmt.Errorf("advance <k>: %w", tt.err)
				res, body := get(h, target)
				if diff := cmp.Diff(fmt.Sprintf(javaError, tt.code, source.err), body); diff != "" {
					t.Error(diff)
				}
				if res.StatusCode != 500 || res.Header.Get("Content-Type") != typeJSON {
					t.Errorf("%d %s", res.StatusCode, res.Header.Get("Content-Type"))
				}
				if got := res.Header.Get("Retry-After"); got != tt.retryAfter {
					t.Errorf("%v: Retry-After %q, want %q", tt.err, got, tt.retryAfter)
				}
			})
		}
	}
}

func TestOtherErrors(t *testing.T) {
	tests := []struct {
		method, target string
		err            error
		status         int
		want           string // after the timestamp
	}{
		{"GET", "/nope", nil, 404, `"status":404,"error":"Not Found","message":"No message available","path":"/nope"}`},
		{"POST", "/a%20b", nil, 404, `"status":404,"error":"Not Found","message":"No message available","path":"/a%20b"}`},
		{"GET", "/api/segment/get/", nil, 404, `"status":404,"error":"Not Found","message":"No message available","path":"/api/segment/get/"}`},
		{"GET", "/api/segment/get/%00", nil, 500,
			`"status":500,"error":"Internal Server Error","exception":"com.sankuai.inf.leaf.server.exception.LeafServerException",` +
				`"message":"Result{id=-2, status=EXCEPTION}","path":"/api/segment/get/%00","detail":"invalid argument: the tag holds a control character"}`},
		{"GET", "/api/uuid/get/k?count=5", nil, 400,
			`"status":400,"error":"Bad Request","message":"invalid argument: unknown parameter \"count\"; this route has: n","path":"/api/uuid/get/k"}`},
		{"GET", "/api/uid/parse/1?lay=uid", nil, 400,
			`"status":400,"error":"Bad Request","message":"invalid argument: unknown parameter \"lay\"; this route has: layout","path":"/api/uid/parse/1"}`},
		{"TRACE", "/api/segment/get/k", nil, 405,
			`"status":405,"error":"Method Not Allowed","message":"Request method 'TRACE' not supported","path":"/api/segment/get/k"}`},
		{"POST", "/healthz", nil, 405,
			`"status":405,"error":"Method Not Allowed","message":"Request method 'POST' not supported","path":"/healthz"}`},
		{"GET", "/api/snowflake/get/k", nil, 501,
			`"status":501,"error":"Not Implemented","message":"scheme not enabled: \"snowflake\"; this server has: segment, uuid","path":"/api/snowflake/get/k"}`},
		{"GET", "/api/segment/get/k", leaf.ErrClosed, 503,
			`"status":503,"error":"Service Unavailable","message":"closed","path":"/api/segment/get/k"}`},
		{"GET", "/api/segment/get/k", context.Canceled, 499,
			`"status":499,"error":"Client Closed Request","message":"context canceled","path":"/api/segment/get/k"}`},
		{"GET", "/decodeSnowflakeId", nil, 400,
			`"status":400,"error":"Bad Request","exception":"org.springframework.web.bind.MissingServletRequestParameterException",` +
				`"message":"Required String parameter 'snowflakeId' is not present","path":"/decodeSnowflakeId"}`},
		{"GET", "/api/segment/get/k?n=%zz", nil, 400,
			`"status":400,"error":"Bad Request","message":"invalid argument: the query string is malformed","path":"/api/segment/get/k"}`},
		{"GET", "/api/segment/get/k?n=+2", nil, 400,
			`"status":400,"error":"Bad Request","message":"invalid argument: n must be a number from 1 to 5000","path":"/api/segment/get/k"}`},
		{"GET", "/api/snowflake/get", nil, 404, `"status":404,"error":"Not Found","message":"No message available","path":"/api/snowflake/get"}`},
		{"GET", "/x/../cache", nil, 404, `"status":404,"error":"Not Found","message":"No message available","path":"/x/../cache"}`},
		{"PROPFIND", "/cache", nil, 405,
			`"status":405,"error":"Method Not Allowed","message":"Request method 'PROPFIND' not supported","path":"/cache"}`},
		{"GET", "/cache", nil, 500,
			`"status":500,"error":"Internal Server Error","exception":"java.lang.IllegalArgumentException","message":"You should config leaf.segment.enable=true first","path":"/cache"}`},
		{"GET", "/db", nil, 500,
			`"status":500,"error":"Internal Server Error","exception":"java.lang.IllegalArgumentException","message":"You should config leaf.segment.enable=true first","path":"/db"}`},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			h, source := newFake()
			source.err = tt.err
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(tt.method, tt.target, nil))
			if rec.Code != tt.status {
				t.Errorf("%s %s: status %d, want %d", tt.method, tt.target, rec.Code, tt.status)
			}
			if diff := cmp.Diff(bubbleTime+tt.want, rec.Body.String()); diff != "" {
				t.Errorf("%s %s: %s", tt.method, tt.target, diff)
			}
		})
	}
}

func TestHTMLError(t *testing.T) {
	h, source := newFake()
	source.err = fmt.Errorf("advance <script>: %w", leaf.ErrUnknownTag)
	res, body := get(h, "/api/segment/get/k", "Accept", "text/html,*/*;q=0.8")
	want := `<html><body><h1>Whitelabel Error Page</h1><p>This application has no explicit mapping for /error, so you are seeing this as a fallback.</p>` +
		`<div id='created'>DATE</div><div>There was an unexpected error (type=Internal Server Error, status=500).</div>` +
		`<div>Result{id=-2, status=EXCEPTION}</div><div>advance &lt;script&gt;: unknown tag</div></body></html>`
	body = regexp.MustCompile(`[A-Z][a-z]{2} [A-Z][a-z]{2} \d{2} \d{2}:\d{2}:\d{2} \S+ \d{4}`).ReplaceAllString(body, "DATE")
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if res.StatusCode != 500 || res.Header.Get("Content-Type") != typeHTML {
		t.Errorf("%d %s", res.StatusCode, res.Header.Get("Content-Type"))
	}
}

var errDown = errors.New("connection refused")

// A downStore does not answer.
type downStore struct{}

func (downStore) Advance(context.Context, string, int64) (segment.Grant, error) {
	return segment.Grant{}, errDown
}

func (downStore) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) { yield(segment.Tag{}, errDown) }
}

// Before the store's first answer, the result is Java Leaf's -1.
func TestStoreDownSinceStart(t *testing.T) {
	h, _ := newReal(t, downStore{}, &segment.SetOptions{Options: segment.Options{Wait: 50 * time.Millisecond}})
	res, body := get(h, "/api/segment/get/k")
	if res.StatusCode != 500 || !regexp.MustCompile(`"message":"Result\{id=-1, status=EXCEPTION\}".*no usable answer`).MatchString(body) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	if res, body := get(h, "/db"); res.StatusCode != 503 || !regexp.MustCompile(`"message":"no usable answer`).MatchString(body) {
		t.Errorf("/db: %d %s", res.StatusCode, body)
	}
}

func TestUnknownTagOfRealSet(t *testing.T) {
	h, _ := newReal(t, newStore(t), nil)
	res, body := get(h, "/api/segment/get/nope")
	if res.StatusCode != 500 || !regexp.MustCompile(`"message":"Result\{id=-2, status=EXCEPTION\}","path":"/api/segment/get/nope"`).MatchString(body) {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// HEAD returns the headers of a GET, and takes no ID.
func TestHead(t *testing.T) {
	h, _ := newReal(t, newStore(t, segment.Tag{Name: "order", MaxID: 1, Step: 10}), nil)
	for target, want := range map[string]int{"order": 200, "order?n=5": 200, "order?n=0": 400, "nope": 500, "nope?n=5": 500} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(http.MethodHead, "/api/segment/get/"+target, nil))
		if rec.Code != want {
			t.Errorf("HEAD %s: %d, want %d", target, rec.Code, want)
		}
	}
	if _, body := get(h, "/api/segment/get/order"); body != "1" {
		t.Errorf("the first ID is %s", body)
	}
}

// A server without the segment scheme never answers 200.
func TestNoScheme(t *testing.T) {
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: issuer.New(nil, nil)})
	for _, target := range []string{"/api/segment/get/k", "/api/segment/get/k?n=2", "/api/snowflake/get/k"} {
		if res, body := get(h, target); res.StatusCode != 501 {
			t.Errorf("%s: %d %s, want 501", target, res.StatusCode, body)
		}
	}
}
