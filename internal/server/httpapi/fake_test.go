package httpapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/segment"
)

// A fakeSource issues 1, 2, 3, … under every key, or fails with err, and keeps the
// last key.
type fakeSource struct {
	next atomic.Int64
	err  error
	key  atomic.Value // string
}

func (f *fakeSource) Next(_ context.Context, key string) (int64, error) {
	f.key.Store(key)
	if f.err != nil {
		return 0, f.err
	}
	return f.next.Add(1), nil
}

func (f *fakeSource) Take(_ context.Context, key string, dst []leaf.Range, n int) ([]leaf.Range, error) {
	f.key.Store(key)
	if f.err != nil {
		return dst, f.err
	}
	end := f.next.Add(int64(n)) + 1
	mid := end - int64(n) + int64(n)/2 // two ranges where they can be
	if n == 1 {
		return append(dst, leaf.Range{Start: end - 1, End: end}), nil
	}
	return append(dst, leaf.Range{Start: end - int64(n), End: mid}, leaf.Range{Start: mid, End: end}), nil
}

func (f *fakeSource) lastKey() string {
	key, _ := f.key.Load().(string)
	return key
}

// newFake returns the routes over a fake source of segment IDs.
func newFake() (http.Handler, *fakeSource) {
	source := new(fakeSource)
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(source)}, &issuer.Options{MaxBatch: 5000})
	return httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids}), source
}

// newReal returns the routes over a Set on store, and the Set.
func newReal(t *testing.T, store segment.Store, opts *segment.SetOptions) (http.Handler, *segment.Set) {
	set := segment.NewSet(store, opts)
	t.Cleanup(func() {
		if err := set.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ids := issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil)
	none := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	return httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids, Tags: issuer.NewTags(store, set.Server(), nil), Metrics: none}), set
}

func newStore(t *testing.T, tags ...segment.Tag) *kv.Store {
	store := memory.New().Store()
	for _, tag := range tags {
		if err := store.Create(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

// do sends a request through a real connection, as the length and the framing of an
// answer come from net/http.
func do(t *testing.T, server *httptest.Server, method, target string, header ...string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, server.URL+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	res, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(body)
}

// get asks the handler directly.
func get(h http.Handler, target string, header ...string) (*http.Response, string) {
	req := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Result(), rec.Body.String()
}
