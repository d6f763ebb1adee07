package site_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/leaf-id/leaf/site"
)

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func pages(t *testing.T, folder string) []string {
	t.Helper()
	names, err := site.Pages(folder)
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages in %s: %v", folder, err)
	}
	return names
}

// Each page is in the navigation once. README is the front page.
func TestNavigation(t *testing.T) {
	sections, err := site.Navigation()
	if err != nil {
		t.Fatal(err)
	}
	listed := []string{"README"}
	for _, s := range sections {
		if s.English == "" || s.Chinese == "" {
			t.Errorf("a section without a title: %+v", s)
		}
		listed = append(listed, s.Pages...)
	}
	slices.Sort(listed)
	for i, page := range listed[1:] {
		if page == listed[i] {
			t.Errorf("site/navigation.json lists %s twice", page)
		}
	}
	written := pages(t, site.Docs)
	slices.Sort(written)
	for _, page := range written {
		if !slices.Contains(listed, page) {
			t.Errorf("docs/%s.md is not in site/navigation.json: add it where readers look for it", page)
		}
	}
	for _, page := range listed {
		if !slices.Contains(written, page) {
			t.Errorf("site/navigation.json lists %s, which is no page", page)
		}
	}
}

// Each Chinese page follows the present English one.
func TestChineseIsUpToDate(t *testing.T) {
	english, chinese := pages(t, site.Docs), pages(t, filepath.Join(site.Docs, "zh"))
	for _, page := range english {
		if !slices.Contains(chinese, page) {
			t.Errorf("docs/zh/%s.md is missing: translate docs/%[1]s.md", page)
			continue
		}
		digest, err := site.Digest(page)
		if err != nil {
			t.Fatal(err)
		}
		if found := site.Translated(read(t, filepath.Join(site.Docs, "zh", page+".md"))); found != digest {
			t.Errorf("docs/%s.md has changed since docs/zh/%[1]s.md was written (%q, now %s): bring the Chinese page up to date, then 'make translated NAME=%[1]s'", page, found, digest)
		}
	}
	for _, page := range chinese {
		if !slices.Contains(english, page) {
			t.Errorf("there is no English page %s", page)
		}
	}
}

// The blocks of commands are the same in both languages.
func TestChineseHasTheSameCommands(t *testing.T) {
	for _, page := range pages(t, filepath.Join(site.Docs, "zh")) {
		if !slices.Equal(shell(read(t, filepath.Join(site.Docs, page+".md"))), shell(read(t, filepath.Join(site.Docs, "zh", page+".md")))) {
			t.Errorf("docs/zh/%s.md has other blocks marked sh than the English page", page)
		}
	}
}

// shell returns the blocks marked sh.
func shell(text string) (blocks []string) {
	for _, part := range strings.Split("\n"+text, "\n```sh\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```")
		blocks = append(blocks, block)
	}
	return blocks
}

// Lines of text have at most 100 characters. Tables, links and blocks of code may be longer.
func TestLineLength(t *testing.T) {
	for _, page := range append(pages(t, site.Docs), "../README", "../CONTRIBUTING") {
		prose(read(t, filepath.Join(site.Docs, page+".md")), func(number int, line string) {
			if n := utf8.RuneCountInString(line); n > 100 && strings.Contains(line, " ") && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") {
				t.Errorf("docs/%s.md:%d has %d characters, at most 100", page, number, n)
			}
		})
	}
}

// prose calls f with each line outside of blocks of code, and its number.
func prose(text string, f func(number int, line string)) {
	code := false
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(line, "```") {
			code = !code
		} else if !code {
			f(number, strings.TrimRight(line, "\n"))
		}
	}
}
