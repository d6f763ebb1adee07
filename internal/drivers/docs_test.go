package drivers

import (
	"os"
	"strings"
	"testing"
)

// Each store and each registry is in the tables that a reader chooses from.
func TestDocsNameEveryDriver(t *testing.T) {
	var stores, registries []string
	for _, d := range table() {
		stores = append(stores, d.scheme)
	}
	for _, d := range registryTable() {
		registries = append(registries, d.scheme)
	}
	for page, schemes := range map[string][]string{"segment-mode": stores, "snowflake-mode": registries, "stores": append(stores, registries...)} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, scheme := range schemes {
			scheme, _, secure := strings.Cut(scheme, "rediss") // over TLS: told once for all forms
			if secure {
				scheme = "rediss"
			}
			if !strings.Contains(string(text), "`"+scheme) {
				t.Errorf("docs/%s.md does not name %s", page, scheme)
			}
		}
	}
}
