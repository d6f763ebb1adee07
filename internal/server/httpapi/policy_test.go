package httpapi_test

import (
	"crypto/sha256"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

// A browser applies a style only if the policy has its digest, and no other.
func TestPagePolicy(t *testing.T) {
	h, _ := newReal(t, newStore(t, segment.Tag{Name: "k", MaxID: 1, Step: 1}), nil)
	for _, target := range []string{"/cache", "/db"} {
		res, body := get(h, target)
		_, style, _ := strings.Cut(body, "<style>")
		style, _, found := strings.Cut(style, "</style>")
		digest := sha256.Sum256([]byte(style))
		want := "style-src 'sha256-" + base64.StdEncoding.EncodeToString(digest[:]) + "'"
		if policy := res.Header.Get("Content-Security-Policy"); !found || !strings.Contains(policy, want) || !strings.Contains(policy, "default-src 'none'") {
			t.Errorf("%s: policy %q, want %s", target, policy, want)
		}
	}
}
