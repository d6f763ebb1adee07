package v1api_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/segment"
)

// plain is what each number of the tag in the test has and no hidden one.
var plain = regexp.MustCompile(`7770000\d\d`)

func TestMasked(t *testing.T) {
	option := segment.TagOptions{segment.OptionMask: "k1:10^12:" + drivertest.MaskKeys["k1"].Fingerprint(), segment.OptionForm: "C{n:12}"}
	tag := segment.Tag{Name: "order", MaxID: 777_000_001, Step: 10, Options: option}
	h := tagsWith(t, drivertest.MaskKeys, tag)
	for _, c := range []struct {
		query  string
		status int
		want   string
	}{
		{"order", 200, `^{"ids":\["\d+"\]}$`},
		{"order?n=2", 200, `^{"ids":\["\d+","\d+"\]}$`},
		{"order?n=2&ranges=1", 200, `^{"ranges":\[{"start":"\d+","count":"1"},{"start":"\d+","count":"1"}\]}$`},
		{"order?format=text", 200, `^\d+$`},
		{"order?form=1&n=2", 200, `^{"ids":\["C\d{12}","C\d{12}"\]}$`},
		{"order?contiguous=1", 200, `^{"ids":\["\d+"\]}$`},
		{"order?n=2&contiguous=1", 400, "NOT_CONTIGUOUS"},
		{"order?n=2&contiguous=1&ranges=1", 400, "NOT_CONTIGUOUS"},
		{"order?n=10001&ranges=1", 400, "INVALID_ARGUMENT"},
		{"order?period=2026-11-23", 400, "the tag has no periods"},
	} {
		res := ask(h, http.MethodGet, "/v1/ids/segment/"+c.query)
		if body := strings.TrimSpace(res.Body.String()); res.Code != c.status || !regexp.MustCompile(c.want).MatchString(body) || plain.MatchString(body) {
			t.Errorf("%s: %d %s, want %d %s", c.query, res.Code, body, c.status, c.want)
		}
	}
	without := tagsWith(t, nil, tag)
	for _, query := range []string{"order", "order?n=2", "order?form=1"} {
		if res := ask(without, http.MethodGet, "/v1/ids/segment/"+query); res.Code != http.StatusServiceUnavailable || !strings.Contains(res.Body.String(), "MASK_KEY") {
			t.Errorf("%s without the key: %d %s", query, res.Code, res.Body)
		}
	}
}

// A wrong period is refused with the reason.
func TestWrongPeriod(t *testing.T) {
	h := tags(t, segment.Tag{Name: "day", MaxID: 1, Step: 10, Options: segment.TagOptions{segment.OptionPeriod: "week"}})
	if res := ask(h, http.MethodGet, "/v1/ids/segment/day?period=2026-11-24"); res.Code != http.StatusBadRequest || !strings.Contains(res.Body.String(), "no period begins on 2026-11-24") {
		t.Errorf("got %d %s", res.Code, res.Body)
	}
}
