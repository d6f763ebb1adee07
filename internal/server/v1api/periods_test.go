package v1api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/v1api"
	"github.com/leaf-id/leaf/segment"
)

func TestPeriods(t *testing.T) {
	store := memory.New().Store()
	tag := segment.Tag{Name: "invoice", MaxID: 1, Step: 1000, Options: segment.TagOptions{segment.OptionPeriod: "fiscal:04-06", segment.OptionZone: "Europe/London"}}
	if err := store.Create(t.Context(), tag); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), segment.Tag{Name: "plain", MaxID: 1, Step: 1000}); err != nil {
		t.Fatal(err)
	}
	set := segment.NewSet(store, &segment.SetOptions{Options: segment.Options{Wait: time.Minute}})
	defer set.Close(t.Context())
	opts := &frontend.Options{IDs: issuer.New(map[string]issuer.Source{issuer.Segment: issuer.Numbers(set)}, nil),
		Access: access.New(access.Options{Local: true})}
	h := v1api.New(opts, http.NotFoundHandler())
	year, err := tag.Options.PeriodOf("", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		query, want, period string
	}{
		{"", `{"ids":["1"],"period":"` + year + `"}`, year},
		{"?n=2", `{"ids":["2","3"],"period":"` + year + `"}`, year},
		{"?n=2&ranges=1", `{"ranges":[{"start":"4","count":"2"}],"period":"` + year + `"}`, year},
		{"?contiguous=1&n=2", `{"ids":["6","7"],"period":"` + year + `"}`, year},
		{"?format=text&n=2", "8\n9", year},
		{"?period=2020-04-06", `{"ids":["1"],"period":"2020-04-06"}`, "2020-04-06"},
		{"?period=2020-04-06&n=2", `{"ids":["2","3"],"period":"2020-04-06"}`, "2020-04-06"},
	} {
		res := ask(h, http.MethodGet, "/v1/ids/segment/invoice"+c.query)
		if got := strings.TrimSpace(res.Body.String()); res.Code != http.StatusOK || got != c.want || res.Header().Get("Leaf-Period") != c.period {
			t.Errorf("%s: got %d %s, period %q, want %s", c.query, res.Code, got, res.Header().Get("Leaf-Period"), c.want)
		}
	}
	for _, path := range []string{"invoice?period=", "invoice?period=2020-04-05", "invoice?period=2020-02-30", "invoice?period=1999-04-06", "invoice?period=2999-04-06",
		"invoice?period=2020-04-06&period=2021-04-06", "plain?period=2020-04-06"} {
		if res := ask(h, http.MethodGet, "/v1/ids/segment/"+path); res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(), "INVALID_ARGUMENT") {
			t.Errorf("%s: got %d %s", path, res.Code, res.Body)
		}
	}
	if res := ask(h, http.MethodGet, "/v1/ids/segment/plain"); res.Code != http.StatusOK || res.Body.String() != "{\"ids\":[\"1\"]}\n" || res.Header().Get("Leaf-Period") != "" {
		t.Errorf("a plain tag: %d %s", res.Code, res.Body)
	}
}
