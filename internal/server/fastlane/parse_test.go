package fastlane

import (
	"strings"
	"testing"
)

// The lane takes keys, hosts and lines that net/http would take as they are, up to the last letter
// of each range.
func TestLiteral(t *testing.T) {
	for name, tt := range map[string]struct {
		is      func(string) bool
		yes, no []string
	}{
		"key": {
			isKey,
			[]string{"a", "z", "A", "Z", "0", "9", "-", "_", ":", "a.b", strings.Repeat("k", 128)},
			[]string{"", ".", "..", "`", "{", "@", "[", "/", ";", "a b", "a%20b", "é", "\x7f", strings.Repeat("k", 129)},
		},
		"host": {
			func(s string) bool { return isHost([]byte(s)) },
			[]string{"a", "z", "A", "Z", "0", "9", "a-b.c_d:80", "[::1]:8080"},
			[]string{"", "`", "{", "@", "/", ";", "a b", "é", "a,b", "u@h"},
		},
		"line": {
			func(s string) bool { return isPlain([]byte(s)) },
			[]string{"", " ", "~", "Host: x"},
			[]string{"\x1f", "\x7f", "a\tb", "a\rb", "é"},
		},
	} {
		for _, text := range tt.yes {
			if !tt.is(text) {
				t.Errorf("%s: %q is none", name, text)
			}
		}
		for _, text := range tt.no {
			if tt.is(text) {
				t.Errorf("%s: %q is one", name, text)
			}
		}
	}
}

// A path has a target only if it names one ID of a scheme, and needs no closer look.
func TestTargetOf(t *testing.T) {
	for path, want := range map[string]target{
		"/api/segment/get/order":   {scheme: "segment", key: "order"},
		"/v1/ids/segment/order":    {scheme: "segment", key: "order", api: 1},
		"/v1/ids/segment/a.b":      {scheme: "segment", key: "a.b", api: 1},
		"/v1/ids/segment/order/x":  {},
		"/v1/ids/segment":          {},
		"/v1/ids/nothing/order":    {},
		"/api/segment/get/a.b":     {}, // Java Leaf cuts the name there
		"/api/segment/get/":        {},
		"/api/segment/get/order?n": {},
		"/nothing":                 {},
	} {
		got, ok := targetOf(path)
		if ok != (want.scheme != "") || ok && got != want {
			t.Errorf("%s: %+v, %v", path, got, ok)
		}
	}
}

// Headers that the lane does not know as they are go to net/http.
func TestHeaders(t *testing.T) {
	for line, want := range map[string]bool{
		"Host: x":                       true,
		"Host:x":                        true,
		"Host: ":                        false,
		"x-forwarded-proto: https":      true, // the longest name
		"x-forwarded-protocol: https":   false,
		": x":                           false,
		"Accept: */*":                   true,
		"Accept:":                       false,
		"Authorization: Bearer abc":     true,
		"Authorization: Bearer ":        false,
		"Authorization: Bearer a b":     false,
		"Authorization: Basic abc":      false,
		"Connection: keep-alive":        true,
		"Connection: close":             false,
		"User-Agent: curl/8":            true,
		"User-Agent: Mozilla/5.0 (X11)": false,
		"Content-Length: 1":             false,
		"Host : x":                      false,
	} {
		var h headers
		if got := h.add([]byte(line)); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
	var h headers
	for i, line := range []string{"Via: a", "Via: b", "Host: a", "Host: b"} {
		if got := h.add([]byte(line)); got != (i < 3) {
			t.Errorf("%q as number %d: %v", line, i, got)
		}
	}
}
