package site_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/site"
)

var (
	figure = regexp.MustCompile(`\d[\d,]*(?:\.\d+)?`)
	bits   = regexp.MustCompile(`\d+ bits`) // a width, not a measurement
)

func figures(text string) (all []string) {
	for _, f := range figure.FindAllString(text, -1) {
		all = append(all, strings.ReplaceAll(f, ",", ""))
	}
	return all
}

// The figures in tables of the short pages are those that `make bench` wrote last.
func TestFiguresAreMeasured(t *testing.T) {
	measured := map[string]bool{}
	for _, f := range figures(read(t, filepath.Join(site.Docs, "performance-tables.md"))) {
		measured[f] = true
	}
	for _, page := range []string{"performance", "comparison"} {
		found := 0
		prose(read(t, filepath.Join(site.Docs, page+".md")), func(number int, line string) {
			cells := strings.Split(strings.Trim(line, "| "), "|")
			if !strings.HasPrefix(line, "|") {
				return
			}
			for _, f := range figures(bits.ReplaceAllString(strings.Join(cells[1:], "|"), "")) {
				found++
				if !measured[f] {
					t.Errorf("docs/%s.md:%d: %s is not in performance-tables.md: take the new figure over", page, number, f)
				}
			}
		})
		if found < 20 {
			t.Errorf("docs/%s.md: only %d figures found", page, found)
		}
	}
}
