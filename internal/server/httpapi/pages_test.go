package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/segment"
)

// cells returns the text of the cells of a page's rows, its head first.
func cells(body string) [][]string {
	var rows [][]string
	cell := regexp.MustCompile(`<t[hd]>(.*?)</t[hd]>`)
	for _, row := range regexp.MustCompile(`(?s)<tr>.*?</tr>`).FindAllString(body, -1) {
		var texts []string
		for _, m := range cell.FindAllStringSubmatch(row, -1) {
			texts = append(texts, m[1])
		}
		rows = append(rows, texts)
	}
	return rows
}

func TestCachePage(t *testing.T) {
	store := newStore(t,
		segment.Tag{Name: "k<b>", MaxID: 1, Step: 2000},
		segment.Tag{Name: "unused", MaxID: 1, Step: 2000})
	h, set := newReal(t, store, nil)
	if res, body := get(h, "/cache"); res.StatusCode != 200 || len(cells(body)) != 1 {
		t.Errorf("before any request: %d %s", res.StatusCode, body)
	}
	for range 3 {
		if _, err := set.Next(t.Context(), "k<b>"); err != nil {
			t.Fatal(err)
		}
	}
	res, body := get(h, "/cache")
	want := [][]string{
		{"name", "init", "next", "pos", "value0", "max0", "step0", "value1", "max1", "step1"},
		{"k&lt;b&gt;", "true", "false", "0", "4", "2001", "2000", "0", "0", "0"},
	}
	if diff := cmp.Diff(want, cells(body)); diff != "" || res.Header.Get("Content-Type") != typeHTML {
		t.Errorf("%s %s", res.Header.Get("Content-Type"), diff)
	}
	if _, err := set.Take(t.Context(), "k<b>", nil, 300); err != nil { // more than 10 %: the next segment is fetched
		t.Fatal(err)
	}
	for len(set.Stats()[0].Segments) < 2 && t.Context().Err() == nil {
		time.Sleep(time.Millisecond)
	}
	_, body = get(h, "/cache")
	if got := cells(body)[1]; got[2] != "true" || got[7] != "2001" {
		t.Errorf("with a second segment: %q", got)
	}
}

func TestDBPage(t *testing.T) {
	h, _ := newReal(t, newStore(t,
		segment.Tag{Name: "<i>", MaxID: 1234567, Step: 10},
		segment.Tag{Name: "user", MaxID: 1, Step: 2000}), nil)
	res, body := get(h, "/db")
	got := cells(body)
	for _, row := range got[1:] {
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d$`).MatchString(row[3]) {
			t.Errorf("update: %q", row[3])
		}
		row[3] = ""
	}
	want := [][]string{{"tag", "max", "step", "update"}, {"&lt;i&gt;", "1234567", "10", ""}, {"user", "1", "2000", ""}}
	if diff := cmp.Diff(want, got); diff != "" || res.StatusCode != 200 || res.Header.Get("Content-Type") != typeHTML {
		t.Errorf("%d %s %s", res.StatusCode, res.Header.Get("Content-Type"), diff)
	}
}

func TestPagesTakeJavasMethods(t *testing.T) {
	h, _ := newReal(t, newStore(t, segment.Tag{Name: "k", MaxID: 1, Step: 10}), nil)
	for _, target := range []string{"/cache", "/db"} {
		for method, want := range map[string]int{"GET": 200, "HEAD": 200, "POST": 200, "PUT": 200, "PATCH": 200, "DELETE": 200, "OPTIONS": 200, "TRACE": 405} {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest(method, target, nil))
			if rec.Code != want {
				t.Errorf("%s %s: %d, want %d", method, target, rec.Code, want)
			}
		}
	}
}

// Who owns a name that points to this machine reads no pages.
func TestPagesOnLoopback(t *testing.T) {
	store := newStore(t, segment.Tag{Name: "k", MaxID: 1, Step: 10})
	source := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(new(fakeSource))}, nil)
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: source,
		Tags: issuer.NewTags(store, nil, nil), Listen: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)},
	})
	for url, want := range map[string]int{
		"http://rebound.example/cache": 403, "http://rebound.example/db": 403, "http://rebound.example/api/segment/get/k": 200,
		"http://localhost:8080/cache": 200, "http://127.0.0.1:8080/db": 200,
	} {
		if res, body := get(h, url); res.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", url, res.StatusCode, body, want)
		}
	}
}

// A longStore lists n tags, then fails with err, if not nil.
type longStore struct {
	segment.Store
	n   int
	err error
}

func (s longStore) Tags(context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		for i := range s.n {
			if !yield(segment.Tag{Name: fmt.Sprint("tag", i)}, nil) {
				return
			}
		}
		if s.err != nil {
			yield(segment.Tag{}, s.err)
		}
	}
}

// pieces counts how an answer is written.
type pieces struct {
	http.ResponseWriter
	header        http.Header
	count, length int
	largest       int
	tail          string
}

func (p *pieces) Header() http.Header { return p.header }
func (p *pieces) WriteHeader(int)     {}
func (p *pieces) Write(b []byte) (int, error) {
	p.count++
	p.length += len(b)
	p.largest = max(p.largest, len(b))
	p.tail = string(b[max(0, len(b)-200):])
	return len(b), nil
}

func TestLongPageIsStreamed(t *testing.T) {
	store := longStore{n: 20_000, err: errors.New("gone & lost")}
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: issuer.New(nil, nil), Tags: issuer.NewTags(store, nil, nil)})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/db", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &pieces{header: make(http.Header)}
	h.ServeHTTP(p, req)
	if p.count < 10 || p.largest > 32<<10 || p.length < 20_000*20 {
		t.Errorf("%d bytes in %d pieces of up to %d", p.length, p.count, p.largest)
	}
	if !strings.Contains(p.tail, "The list ends here: no usable answer (the log of the server says more)") {
		t.Errorf("the end does not tell of the failure: %q", p.tail)
	}
}

func TestHealth(t *testing.T) {
	var report health.Report
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(new(fakeSource))}, nil)
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Health: func() health.Report { return report }})
	check := func(target string, status int, want string) {
		t.Helper()
		if res, body := get(h, target); res.StatusCode != status || body != want || res.Header.Get("Content-Type") != typeText {
			t.Errorf("%s: %d %q %s, want %d %q", target, res.StatusCode, body, res.Header.Get("Content-Type"), status, want)
		}
	}
	check("/healthz", 200, "ok")
	check("/readyz", 200, "ok")
	const means = `ready means: the store has answered since the start, a worker ID is held, and IDs can be issued for a while (ready_for).
A store that fails later counts once nothing that is asked for can be issued: the other servers would fail alike.
With ?scheme=NAME only that scheme counts.
`
	check("/readyz?verbose", 200, "ok\nscheme segment enabled\nscheme uuid enabled\n"+means)
	report.Conditions = []health.Condition{{Name: health.ClockStepped, Schemes: []string{issuer.Snowflake}, Err: errors.New("moved by 3s")}}
	check("/readyz", 200, "ok")
	check("/readyz?verbose", 200, "ok\nscheme segment enabled\nscheme uuid enabled\ndegraded clock_stepped snowflake: moved by 3s\n"+
		"  do: have a time service keep the clock; a restart has IDs follow it, once it is right\n"+means)
	report.Conditions = []health.Condition{{Name: health.StoreSilent, Schemes: []string{issuer.Segment}, Down: true,
		Err: fmt.Errorf("the store is unavailable: %w", &leaf.StoreError{Err: errors.New("dial db.internal:3306")})}}
	check("/healthz", 200, "ok")
	check("/readyz", 503, "not ready: the store is unavailable: no usable answer (the log of the server says more)")
	check("/readyz?scheme=uuid", 200, "ok")
	check("/readyz?scheme=segment", 503, "not ready: the store is unavailable: no usable answer (the log of the server says more)")
	if _, body := get(h, "/readyz?verbose"); !strings.Contains(body, "\ndown store_silent segment: the store is unavailable: no usable answer (the log of the server says more)\n  do: start the store") {
		t.Errorf("/readyz?verbose: %s", body)
	}
	if res, body := get(h, "/readyz?scheem=segment"); res.StatusCode != 400 || !strings.Contains(body, "this route has: scheme, verbose") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestVerboseTellsOfFailingTags(t *testing.T) {
	h, _ := newReal(t, downStore{}, &segment.SetOptions{Options: segment.Options{Wait: 50 * time.Millisecond}})
	get(h, "/api/segment/get/k")
	if _, body := get(h, "/readyz?verbose"); !regexp.MustCompile(`tag k: 0 IDs left; failing since \S+ no usable answer`).MatchString(body) {
		t.Error(body)
	}
}

// Java Leaf serves its pages with slashes wherever people put them.
func TestPagesWithSlashes(t *testing.T) {
	h, _ := newReal(t, newStore(t), nil)
	for _, target := range []string{"/cache/", "/db/", "//cache", "/db//", "/decodeSnowflakeId/?snowflakeId=1", "//decodeSnowflakeId?snowflakeId=1"} {
		if res, body := get(h, "http://localhost"+target); res.StatusCode != 200 {
			t.Errorf("%s: %d %s", target, res.StatusCode, body)
		}
	}
	for _, target := range []string{"/cache/x", "/healthz/"} {
		if res, body := get(h, "http://localhost"+target); res.StatusCode != 404 {
			t.Errorf("%s: %d %s", target, res.StatusCode, body)
		}
	}
}
