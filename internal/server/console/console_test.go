package console

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
	"github.com/leaf-id/leaf/internal/testserver/testgate"
	"github.com/leaf-id/leaf/segment"
)

// snapshots counts the readings.
func snapshots(reads *atomic.Int64) func(int, []string) *telemetry.Snapshot {
	return func(_ int, named []string) *telemetry.Snapshot {
		n := float64(reads.Add(1))
		s := &telemetry.Snapshot{Time: time.Now(), Values: map[string]map[string]float64{
			"leaf_segment_ids_issued_total": {"": n}, "leaf_layout_ids_issued_total": {"uid|a": 1, "uid|b": 2}, "leaf_tag_ids_issued_total": {},
		}}
		for _, name := range named {
			s.Values["leaf_tag_ids_issued_total"][name] = n
			s.Tags = append(s.Tags, segment.Stats{Tag: name})
		}
		return s
	}
}

func serveConsole(t *testing.T, gate *access.Gate) (*httptest.Server, *Console) {
	t.Helper()
	c := New(&frontend.Options{Access: gate, Snapshot: snapshots(new(atomic.Int64)), Stopping: make(chan struct{})})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	mux := http.NewServeMux()
	c.Register(mux)
	mux.HandleFunc("/", Page)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() { srv.Close(); cancel(); <-done })
	return srv, c
}

func get(t *testing.T, url, token string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// event reads the next event of that name.
func event(t *testing.T, buf *bufio.Reader, name string, into any) {
	t.Helper()
	for {
		line, err := buf.ReadString('\n')
		if err != nil {
			t.Fatalf("no event %s: %v", name, err)
		}
		if line != "event: "+name+"\n" {
			continue
		}
		data, _ := buf.ReadString('\n')
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), into); err != nil {
			t.Fatal(err)
		}
		return
	}
}

func TestEvents(t *testing.T) {
	srv, _ := serveConsole(t, access.New(access.Options{Local: true}))
	buf := bufio.NewReader(get(t, srv.URL+"/console/events?tag=order", "").Body)
	var h hello
	event(t, buf, "hello", &h)
	if !h.Read || !h.Admin || h.Tokens || len(h.Bounds) < 10 {
		t.Errorf("hello %+v", h)
	}
	if i := slices.IndexFunc(h.Options, func(o option) bool { return o.Name == segment.OptionOrder }); i < 0 || !h.Options[i].Fixed || h.Options[i].Usage == "" ||
		len(h.Options) != len(segment.KnownOptions())-1 {
		t.Errorf("options %+v", h.Options)
	}
	var last sample
	for range 3 {
		event(t, buf, "sample", &last)
	}
	if len(last.Tags) != 1 || last.Tags[0].Name != "order" || last.Values["leaf_segment_ids_issued_total"][""] < 3 {
		t.Errorf("sample %+v", last)
	}
	var past [][4]float64
	if err := json.NewDecoder(get(t, srv.URL+"/console/history?tag=order", "").Body).Decode(&past); err != nil || len(past) == 0 {
		t.Errorf("history %v, %v", past, err)
	}
}

// Without a token everybody gets the files, which hold nothing, and nothing else.
func TestNothingWithoutToken(t *testing.T) {
	token := access.NewToken()
	gate := testgate.New(t, access.Options{Local: true}, "tokens:\n- {name: reader, hash: '"+access.HashToken(token)+"', rights: [read]}\n")
	srv, _ := serveConsole(t, gate)
	for path, want := range map[string]int{"/": 200, "/console/app.js": 200, "/console/none.js": 404, "/console/events": 401, "/console/history?tag=order": 401} {
		if res := get(t, srv.URL+path, ""); res.StatusCode != want {
			t.Errorf("%s: %s, want %d", path, res.Status, want)
		}
	}
	var h hello
	event(t, bufio.NewReader(get(t, srv.URL+"/console/events", token).Body), "hello", &h)
	if !h.Read || h.Admin || !h.Tokens || h.Name != "reader" {
		t.Errorf("hello %+v", h)
	}
}

// A server without tokens on an address that others reach shows nothing.
func TestNothingWithoutRight(t *testing.T) {
	srv, _ := serveConsole(t, access.New(access.Options{}))
	if res := get(t, srv.URL+"/console/events", ""); res.StatusCode != http.StatusForbidden {
		t.Error(res.Status)
	}
}

func TestTooManyPages(t *testing.T) {
	l := newLive(nil)
	for range maxPages {
		if l.open(nil) == nil {
			t.Fatal("refused")
		}
	}
	p := l.open(nil)
	if p != nil {
		t.Error("one more was accepted")
	}
	for q := range maps.Keys(l.pages) {
		l.close(q)
		break
	}
	if l.open(nil) == nil {
		t.Error("no place after one was closed")
	}
}

// Readings that take long are rare: the share of a core is bounded.
func TestReadingsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, open := range []bool{false, true} {
			var reads atomic.Int64
			cost := 100 * time.Millisecond
			l := newLive(func(n int, named []string) *telemetry.Snapshot { time.Sleep(cost); return snapshots(&reads)(n, named) })
			if open {
				l.open(nil)
			}
			c := &Console{live: l}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); c.Run(ctx) }()
			time.Sleep(10 * time.Minute)
			cancel()
			<-done
			share := float64(reads.Load()) * cost.Seconds() / 600
			if most := map[bool]float64{false: 0.0025, true: 0.021}[open]; share > most || reads.Load() < 5 {
				t.Errorf("open %v: %d readings take %.4f of a core, want %.4f at most", open, reads.Load(), share, most)
			}
		}
	})
}

// Pages that come and go do not make readings more frequent than one that stays.
func TestOpeningsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		l := newLive(snapshots(&reads))
		ctx, cancel := context.WithCancel(t.Context())
		go (&Console{live: l}).Run(ctx)
		for range 1000 {
			l.close(l.open([]string{"order"}))
			time.Sleep(10 * time.Millisecond)
		}
		p := l.open([]string{"order"})
		<-p.next // at once, the latest
		opened := time.Now()
		if s := <-p.next; len(s.Tags) != 1 || time.Since(opened) > watched {
			t.Errorf("the tag came after %v, %v", time.Since(opened), s.Tags)
		}
		cancel()
		synctest.Wait() // a reading takes no time here
		if n := reads.Load(); n > 13 {
			t.Errorf("%d readings in 11 s", n)
		}
	})
}

// The history spans a quarter of an hour, and an answer has a bounded number of its points.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reads atomic.Int64
		l := newLive(snapshots(&reads))
		l.open([]string{"order"})
		for range 2000 {
			l.sample()
			time.Sleep(time.Second)
		}
		if n := len(l.points); n < 895 || n > 905 {
			t.Errorf("%d points", n)
		}
		past := l.tag("order")
		if n := len(past); n < maxPoints/2 || n > maxPoints {
			t.Errorf("an answer has %d points", n)
		}
		if got := past[len(past)-1][1]; got != 2000 {
			t.Errorf("the last point is of reading %v", got)
		}
		if s := l.schemes(); s[len(s)-1]["uid"] != 3 || s[len(s)-1]["segment"] != 2000 {
			t.Errorf("the last point of the schemes is %v", s[len(s)-1])
		}
	})
}

func TestFiles(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.Header.Set("Accept-Encoding", "gzip")
	Page(w, r)
	z, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(z)
	for _, part := range []string{"<script>", "style=", "http://", "https://", "onclick"} {
		if strings.Contains(string(text), part) {
			t.Errorf("the page has %s, which its policy forbids", part)
		}
	}
	tag := w.Header().Get("ETag")
	r.Header.Set("If-None-Match", tag)
	w = httptest.NewRecorder()
	if Page(w, r); w.Code != http.StatusNotModified {
		t.Errorf("the same page again: %d", w.Code)
	}
	size := 0
	for _, f := range files() {
		size += len(f.zipped)
		if f.kind == "" {
			t.Error("a file without a type")
		}
	}
	if size > 150_000 {
		t.Errorf("the console has %d bytes compressed", size)
	}
}

// Each key that the script uses has words in both languages, and each has a user.
func TestWords(t *testing.T) {
	words := string(files()["i18n.js"].plain)
	rows := regexp.MustCompile(`(?:^|[\s,{])'?([\w.]+)'?: \['((?:[^'\\]|\\.)*)', '((?:[^'\\]|\\.)*)'\]`).FindAllStringSubmatch(words, -1)
	if len(rows) < 100 {
		t.Fatalf("found %d rows", len(rows))
	}
	var script strings.Builder
	for name, f := range files() {
		if strings.HasSuffix(name, ".js") && name != "i18n.js" {
			script.Write(f.plain)
		}
	}
	known := make(map[string]bool)
	placeholder := regexp.MustCompile(`\{\w+\}`)
	for _, row := range rows {
		known[row[1]] = true
		for _, p := range placeholder.FindAllString(row[2], -1) {
			if !strings.Contains(row[3], p) {
				t.Errorf("%s: the Chinese lacks %s", row[1], p)
			}
		}
		if strings.HasPrefix(row[1], "option") { // of a row in the table of options, or one to come
			continue
		}
		if !regexp.MustCompile(`['"]`+row[1]+`['"]`).MatchString(script.String()) && !strings.Contains(script.String(), row[1]) && !strings.Contains(words, "t('"+row[1]+"'") {
			t.Errorf("%s: no script uses it", row[1])
		}
	}
	for _, use := range regexp.MustCompile(`\bt\('(\w+)'`).FindAllStringSubmatch(script.String(), -1) {
		if !known[use[1]] {
			t.Errorf("no words for %s", use[1])
		}
	}
	for _, o := range tagOptions() {
		if !known["option."+o.Name] {
			t.Errorf("no words for the option %s: add option.%[1]s to i18n.js", o.Name)
		}
	}
}
