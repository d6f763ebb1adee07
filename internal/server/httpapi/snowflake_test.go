package httpapi_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/snowflake"
)

// newFakeTimes returns the routes over a fake source of time-based IDs, in a server
// whose default layout is js53.
func newFakeTimes(t *testing.T) (http.Handler, *fakeSource) {
	t.Helper()
	js53, ok := snowflake.Preset("js53")
	if !ok {
		t.Fatal("no preset js53")
	}
	source := new(fakeSource)
	ids := issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(source)}, &issuer.Options{
		MaxBatch: 5000, Off: map[string]string{issuer.Segment: "not wanted"},
	})
	return httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Layouts: issuer.Layouts{{Name: "js53", Layout: js53}}}), source
}

func TestSnowflakeIDs(t *testing.T) {
	h, source := newFakeTimes(t)
	for i, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequest(method, "/api/snowflake/get/order", nil))
		if rec.Code != 200 || rec.Body.String() != fmt.Sprint(i+1) || rec.Header().Get("Content-Type") != typeText || rec.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q %v", method, rec.Code, rec.Body, rec.Header())
		}
	}
	if got := source.lastKey(); got != "order" {
		t.Errorf("key %q", got)
	}
	if res, body := get(h, "/api/snowflake/get/a/?n=3"); res.StatusCode != 200 || body != "6\n7\n8\n" || source.lastKey() != "a" {
		t.Errorf("batch: %d %q for key %q", res.StatusCode, body, source.lastKey())
	}
	if _, body := get(h, "/api/snowflake/get/a?n=2", "Accept", "application/json"); body != `["9","10"]` {
		t.Errorf("JSON batch: %q", body)
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("HEAD", "/api/snowflake/get/order", nil))
	if rec.Code != 200 || source.next.Load() != 10 {
		t.Errorf("HEAD: %d, the next ID is %d", rec.Code, source.next.Load()+1)
	}
	if res, body := get(h, "/api/segment/get/k"); res.StatusCode != 501 || !strings.Contains(body, "not wanted") {
		t.Errorf("segment: %d %s", res.StatusCode, body)
	}
}

func TestSnowflakeErrors(t *testing.T) {
	tests := []struct {
		err        error
		code       int
		retryAfter string
	}{
		{leaf.ErrNoLease, -3, "1"},
		{fmt.Errorf("%w: %w", leaf.ErrNoLease, leaf.ErrUnsupported), -3, "1"},
		{leaf.ErrClock, -1, "1"},
		{leaf.ErrExhausted, -3, "1"},
		{leaf.ErrOverflow, -3, ""},
	}
	for _, tt := range tests {
		for _, target := range []string{"/api/snowflake/get/k", "/api/snowflake/get/k?n=2"} {
			synctest.Test(t, func(t *testing.T) {
				h, source := newFakeTimes(t)
				source.err = tt.err
				res, body := get(h, target)
				want := strings.Replace(fmt.Sprintf(javaError, tt.code, source.err), "/segment/", "/snowflake/", 1)
				if diff := cmp.Diff(want, body); diff != "" {
					t.Error(diff)
				}
				if got := res.Header.Get("Retry-After"); res.StatusCode != 500 || got != tt.retryAfter {
					t.Errorf("%v: %d, Retry-After %q, want 500, %q", tt.err, res.StatusCode, got, tt.retryAfter)
				}
			})
		}
	}
}

// A silent store is not the reason of this scheme's errors.
func TestSnowflakeErrorsBesideSilentStore(t *testing.T) {
	source := &fakeSource{err: leaf.ErrNoLease}
	ids := issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(source)}, nil)
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Tags: issuer.NewTags(downStore{}, nil, nil)})
	if _, body := get(h, "/api/snowflake/get/k"); !strings.Contains(body, "Result{id=-3, status=EXCEPTION}") {
		t.Error(body)
	}
}

func TestDecodeSnowflakeID(t *testing.T) {
	const undecodable = `{"errorMsg":"snowflake Id反解析发生异常!"}`
	java, _ := newFake() // without the scheme
	js53, _ := newFakeTimes(t)
	tests := []struct {
		h      http.Handler
		query  string
		status int
		want   string
	}{
		{java, "snowflakeId=1169786042799259000", 200, `{"workerId":"39","sequenceId":"3448","timestamp":"1567733700834(2019-09-06 09:35:00.834)"}`},
		{java, "snowflakeId=%2B1169786042799259000", 200, `{"workerId":"39","sequenceId":"3448","timestamp":"1567733700834(2019-09-06 09:35:00.834)"}`},
		{java, "snowflakeId=0", 200, `{"workerId":"0","sequenceId":"0","timestamp":"1288834974657(2010-11-04 09:42:54.657)"}`},
		{java, "snowflakeId=x", 200, undecodable},
		{java, "snowflakeId=", 200, undecodable},
		{java, "snowflakeId=1&snowflakeId=2", 200, undecodable},
		{java, "snowflakeId=9223372036854775808", 200, undecodable},
		{java, "snowflakeId=-1", 200, undecodable},
		{js53, "snowflakeId=9007199254740991", 200, `{"workerId":"31","sequenceId":"127","timestamp":"3966248855551(2095-09-07 23:47:35.551)"}`},
		{js53, "snowflakeId=9007199254740992", 200, undecodable},
		{java, "", 400, `"message":"Required String parameter 'snowflakeId' is not present"`},
		{java, "snowflakeID=1", 400, `"message":"Required String parameter 'snowflakeId' is not present"`},
		{java, "snowflakeId=%zz", 400, `"message":"Required String parameter 'snowflakeId' is not present"`},
	}
	for _, tt := range tests {
		res, body := get(tt.h, "/decodeSnowflakeId?"+tt.query)
		if res.StatusCode != tt.status || body != tt.want && (tt.status == 200 || !strings.Contains(body, tt.want)) {
			t.Errorf("%s: %d %s, want %d %s", tt.query, res.StatusCode, body, tt.status, tt.want)
		}
		if got := res.Header.Get("Content-Type"); got != typeJSON {
			t.Errorf("%s: Content-Type %s", tt.query, got)
		}
	}
	req := httptest.NewRequest("POST", "/decodeSnowflakeId", strings.NewReader("snowflakeId=0"))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	rec := httptest.NewRecorder()
	java.ServeHTTP(rec, req)
	if !strings.HasPrefix(rec.Body.String(), `{"workerId":"0"`) {
		t.Errorf("form: %d %s", rec.Code, rec.Body)
	}
}

// A form is read as far as one can be of use.
func TestLongForm(t *testing.T) {
	h, _ := newFakeTimes(t)
	for size, want := range map[int]int{1 << 10: 200, 1 << 20: 400} {
		body := strings.NewReader("snowflakeId=1&x=" + strings.Repeat("x", size))
		req := httptest.NewRequest("POST", "/decodeSnowflakeId", body)
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if read := int(body.Size()) - body.Len(); rec.Code != want || read > 100<<10 {
			t.Errorf("%d bytes: %d, want %d; %d were read", size, rec.Code, want, read)
		}
	}
}

func TestVerboseListsSchemes(t *testing.T) {
	ids := issuer.New(map[string]issuer.Source{issuer.Snowflake: issuer.Numbers(new(fakeSource))}, &issuer.Options{Off: map[string]string{issuer.Segment: "not wanted"}})
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Health: func() health.Report {
		return health.Report{Conditions: []health.Condition{{Name: health.NoWorkerID, Schemes: []string{issuer.Snowflake}, Down: true, Err: leaf.ErrNoLease}}}
	}})
	_, body := get(h, "/readyz?verbose")
	want := `scheme snowflake enabled; not ready: no valid lease of a worker ID\nscheme uuid enabled\nscheme segment off: not wanted\n`
	if !regexp.MustCompile(want).MatchString(body) {
		t.Error(body)
	}
}
