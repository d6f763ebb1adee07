package site_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/site"
)

// dictionary is that of the Debian package wbritish, which scripts/deps.sh installs.
const dictionary = "/usr/share/dict/british-english"

var (
	word    = regexp.MustCompile(`\p{Latin}[\p{Latin}'’]*`)
	notText = regexp.MustCompile("`[^`]*`" + `|\]\([^)]*\)|<[^>]*>|https?://\S+|[\w.-]*[/_][\w./_-]*|\S*\d\S*`)
	name    = regexp.MustCompile(`\pL\p{Ll}*\p{Lu}`) // camel case, or an abbreviation
)

// The words of the English pages are in the dictionary, or in words.txt, which lists names and terms.
func TestSpelling(t *testing.T) {
	known := map[string]bool{}
	for _, file := range []string{dictionary, "words.txt"} {
		for line := range strings.Lines(read(t, file)) {
			known[strings.TrimSpace(line)] = true
		}
	}
	unknown := map[string]string{}
	for _, page := range append(pages(t, site.Docs), "../README") {
		prose(read(t, filepath.Join(site.Docs, page+".md")), func(_ int, line string) {
			if strings.HasPrefix(line, "    ") {
				return
			}
			for _, w := range word.FindAllString(notText.ReplaceAllString(line, " "), -1) {
				w = strings.TrimSuffix(strings.TrimSuffix(strings.ReplaceAll(w, "’", "'"), "'s"), "'")
				if len(w) > 2 && !known[w] && !known[strings.ToLower(w)] && !name.MatchString(w) {
					unknown[w] = page
				}
			}
		})
	}
	for _, w := range slices.Sorted(maps.Keys(unknown)) {
		t.Errorf("docs/%s.md: %q is not in the dictionary: correct it, or add it to site/words.txt if it is right", unknown[w], w)
	}
}
