package config_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/config"
)

// The table in docs/configuration.md names keys that exist, with their defaults.
func TestDocs(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (`[^`]+`)? ?\\|").FindAllStringSubmatch(string(text), -1)
	if len(rows) < 10 {
		t.Fatalf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		key, value := row[1], strings.Trim(row[2], "`")
		if !slices.Contains(config.KeyPaths(), key) {
			t.Errorf("there is no key %s", key)
			continue
		}
		variable := "LEAF_" + strings.ToUpper(strings.ReplaceAll(key, ".", "_")) + "=" + value
		if diff := cmp.Diff(config.Default(), load(t, config.Source{Environ: []string{variable}})); diff != "" {
			t.Errorf("%s is not %q by default (-default +docs):\n%s", key, value, diff)
		}
	}
}

// The list of keys that change without a restart in docs/configuration.md is complete.
func TestDocsListLiveKeys(t *testing.T) {
	text, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## What changes without a restart?")
	_, section, _ = strings.Cut(section, "These keys are taken up then:")
	section, _, _ = strings.Cut(section, "All others")
	var listed []string
	for _, m := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(section, -1) {
		listed = append(listed, m[1])
	}
	if diff := cmp.Diff(config.LivePaths(), listed); diff != "" {
		t.Errorf("the keys that a reload takes up (-code +docs):\n%s", diff)
	}
}
