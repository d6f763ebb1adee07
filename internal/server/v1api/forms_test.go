package v1api_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/v1api"
	"github.com/leaf-id/leaf/segment"
)

// tags serves the given tags.
func tags(t testing.TB, all ...segment.Tag) http.Handler { return tagsWith(t, nil, all...) }

func tagsWith(t testing.TB, keys segment.MaskKeys, all ...segment.Tag) http.Handler {
	store := memory.New().Store()
	for _, tag := range all {
		if err := store.Create(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{MaskKeys: keys}})
	t.Cleanup(func() { set.Close(t.Context()) })
	<-set.Ready()
	opts := &frontend.Options{IDs: issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil),
		Access: access.New(access.Options{Local: true})}
	return v1api.New(opts, http.NotFoundHandler())
}

func TestForms(t *testing.T) {
	h := tags(t,
		segment.Tag{Name: "invoice", MaxID: 41, Step: 10, Options: segment.TagOptions{segment.OptionForm: "INV-{n:2}{check:luhn}"}},
		segment.Tag{Name: "receipt", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionPeriod: "month", segment.OptionForm: "{period:yyyyMM}/{n}"}},
		segment.Tag{Name: "plain", MaxID: 1, Step: 10})
	for _, c := range []struct {
		query  string
		status int
		want   string
	}{
		{"invoice?form=1", 200, `{"ids":["INV-414"]}`},
		{"invoice", 200, `{"ids":["42"]}`},
		{"invoice?form=0", 200, `{"ids":["43"]}`},
		{"invoice?form=true&n=2", 200, `{"ids":["INV-448","INV-455"]}`},
		{"invoice?form=1&n=2&contiguous=1", 200, `{"ids":["INV-463","INV-471"]}`},
		{"invoice?form=1&format=text&n=2", 200, "INV-489\nINV-497"},
		{"receipt?form=1&period=2020-04-01&n=2", 200, `{"ids":["202004/1","202004/2"],"period":"2020-04-01"}`},
		{"receipt?form=1&format=text&period=2020-05-01", 200, "202005/1"},
		{"receipt?period=2020-05-01", 200, `{"ids":["2"],"period":"2020-05-01"}`},
		{"invoice?form=1&ranges=1", 400, "INVALID_ARGUMENT"},
		{"invoice?form=raw", 400, "INVALID_ARGUMENT"},
		{"invoice?form=1&n=10001", 400, "INVALID_ARGUMENT"},
		{"invoice?form=1&period=2020-05-01", 400, "INVALID_ARGUMENT"},
		{"plain?form=1", 400, "INVALID_ARGUMENT"},
		{"nope?form=1", 404, "UNKNOWN_TAG"},
		{"plain", 200, `{"ids":["1"]}`}, // the refused call has taken nothing
		{"invoice?n=50", 200, `{"ids":["50",`},
		{"invoice?form=1", 500, "OVERFLOW"}, // 100 does not fit
		{"invoice?form=1&n=2", 500, "OVERFLOW"},
		{"invoice", 200, `{"ids":["103"]}`}, // and does not come out
	} {
		res := ask(h, http.MethodGet, "/v1/ids/segment/"+c.query)
		if got := strings.TrimSpace(res.Body.String()); res.Code != c.status || !strings.HasPrefix(got, c.want) && (res.Code == 200 || !strings.Contains(got, c.want)) {
			t.Errorf("%s: got %d %s, want %s", c.query, res.Code, got, c.want)
		}
	}
	if res := ask(h, http.MethodGet, "/v1/ids/uuid/v7?form=1"); res.Code != 400 {
		t.Errorf("a UUID: %d %s", res.Code, res.Body)
	}
	for tag, want := range map[string]int{"invoice": 200, "plain": 400} {
		if res := ask(h, http.MethodHead, "/v1/ids/segment/"+tag+"?form=1"); res.Code != want {
			t.Errorf("HEAD of %s: %d", tag, res.Code)
		}
	}
}
