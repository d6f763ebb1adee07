package httpapi_test

import (
	"strings"
	"testing"
)

func TestProtos(t *testing.T) {
	h, _ := newFake()
	for _, file := range []string{"leaf.proto", "admin.proto", "worker.proto"} {
		if res, body := get(h, "/proto/leaf/v1/"+file); res.StatusCode != 200 || !strings.Contains(body, "package leaf.v1;") {
			t.Errorf("%s: %d %.100s", file, res.StatusCode, body)
		}
	}
	for _, file := range []string{"nope.proto", "leaf.pb.go", "..%2Fv1%2Fleaf.proto"} {
		if res, _ := get(h, "/proto/leaf/v1/"+file); res.StatusCode != 404 {
			t.Errorf("%s: %d", file, res.StatusCode)
		}
	}
}
