package httpapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/httpapi"
	"github.com/leaf-id/leaf/snowflake"
)

func TestUUIDs(t *testing.T) {
	h, _ := newFake()
	form := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	for key, version := range map[string]byte{"v4": '4', "v7": '7', "order": '7', "%00": '7'} {
		res, body := get(h, "/api/uuid/get/"+key)
		if res.StatusCode != 200 || !form.MatchString(body) || body[14] != version || res.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %q", key, res.StatusCode, body)
		}
	}
	_, one := get(h, "/api/uuid/get/v7", "Accept", "application/json")
	_, lines := get(h, "/api/uuid/get/v7?n=5000")
	_, array := get(h, "/api/uuid/get/v7?n=3", "Accept", "application/json")
	var last []string
	if err := json.Unmarshal([]byte(array), &last); err != nil || len(last) != 3 {
		t.Errorf("%v: %s", err, array)
	}
	all := append(append([]string{one}, strings.Fields(lines)...), last...)
	if len(all) != 5004 || !slices.IsSorted(all) || len(slices.Compact(all)) != 5004 {
		t.Errorf("%d UUIDs of version 7 do not ascend", len(all))
	}
	for target, status := range map[string]int{"v1": 400, "v7?n=5001": 400, "v7?n=0": 400, "": 404, "v7/x": 404} {
		if res, body := get(h, "/api/uuid/get/"+target); res.StatusCode != status || strings.Contains(body, "Result{") {
			t.Errorf("%s: %d %s", target, res.StatusCode, body)
		}
	}
}

// The status shows the errors of routes that Java Leaf does not have.
func TestTickets(t *testing.T) {
	source := new(fakeSource)
	ids := issuer.New(map[string]issuer.Source{issuer.Ticket: issuer.Numbers(source)}, nil)
	h := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: ids})
	if res, body := get(h, "/api/ticket/get/order?n=2"); res.StatusCode != 200 || body != "1\n2\n" || source.lastKey() != "order" {
		t.Errorf("%d %q of %q", res.StatusCode, body, source.lastKey())
	}
	for err, status := range map[error]int{leaf.ErrUnknownTag: 404, leaf.ErrExhausted: 503, leaf.ErrOverflow: 500} {
		source.err = err
		res, body := get(h, "/api/ticket/get/order")
		if res.StatusCode != status || strings.Contains(body, "Result{") || (status == 503) != (res.Header.Get("Retry-After") != "") {
			t.Errorf("%v: %d %s", err, res.StatusCode, body)
		}
	}
	h, _ = newFake()
	if res, body := get(h, "/api/ticket/get/order"); res.StatusCode != 501 || !strings.Contains(body, "ticket+mysql://") {
		t.Errorf("no ticket servers: %d %s", res.StatusCode, body)
	}
}

// What parseUID of uid-generator says.
func TestParseUID(t *testing.T) {
	other := snowflake.Layout{Epoch: time.Unix(0, 0), Tick: time.Second, TimeBits: 31, WorkerBits: 23, SequenceBits: 9}
	layouts := issuer.Layouts{
		{Name: "uid-31-23-9-0", Layout: other, Scheme: issuer.UID},
		{Name: "shop", Layout: other},
	}
	served := httpapi.New(http.NewServeMux(), &frontend.Options{IDs: issuer.New(nil, nil), Layouts: layouts})
	bare, _ := newFake()
	for _, tt := range []struct {
		h      http.Handler
		target string
		status int
		body   string
	}{
		{bare, "0", 200, `{"UID":"0","timestamp":"2016-05-20 00:00:00","workerId":"0","sequence":"0"}`},
		{bare, "9223372036854775807", 200, `{"UID":"9223372036854775807","timestamp":"2084-06-07 03:14:07","workerId":"524287","sequence":"8191"}`},
		{bare, "9223372036854775807?layout=uid-baidu", 200, `{"UID":"9223372036854775807","timestamp":"2024-11-20 21:24:15","workerId":"4194303","sequence":"8191"}`},
		{bare, "00?layout=leaf", 200, `{"UID":"0","timestamp":"2010-11-04 09:42:54","workerId":"0","sequence":"0"}`},
		{served, "9223372036854775807", 200, `{"UID":"9223372036854775807","timestamp":"2038-01-19 11:14:07","workerId":"8388607","sequence":"511"}`},
		{bare, "-1", 400, ""},
		{bare, "x", 400, ""},
		{bare, "9223372036854775808", 400, ""},
		{bare, "1?layout=nope", 400, ""},
		{bare, "", 404, ""},
		{bare, "1/2", 404, ""},
	} {
		res, body := get(tt.h, "/api/uid/parse/"+tt.target)
		if res.StatusCode != tt.status || tt.body != "" && body != tt.body {
			t.Errorf("%s: %d %s, want %d %s", tt.target, res.StatusCode, body, tt.status, tt.body)
		}
	}
}
