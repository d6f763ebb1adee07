package site_test

import (
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/leaf-id/leaf/site"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	inline  = regexp.MustCompile("`[^`]*`")
	heading = regexp.MustCompile(`^#{1,6} (.*)$`)
)

// Links between files lead to files, and to headings that they have.
func TestLinks(t *testing.T) {
	for _, file := range documents(t) {
		prose(read(t, file), func(number int, line string) {
			for _, m := range link.FindAllStringSubmatch(inline.ReplaceAllString(line, ""), -1) {
				u, err := url.Parse(m[1])
				if err != nil {
					t.Errorf("%s:%d: %v", file, number, err)
					continue
				}
				if u.Scheme != "" {
					continue
				}
				to := file
				if u.Path != "" {
					to = filepath.Join(filepath.Dir(file), u.Path)
				}
				if _, err := os.Stat(to); err != nil {
					t.Errorf("%s:%d: broken link: %v", file, number, err)
				} else if u.Fragment != "" && !slices.Contains(anchors(read(t, to)), u.Fragment) {
					t.Errorf("%s:%d: %s has no heading #%s", file, number, to, u.Fragment)
				}
			}
		})
	}
}

// The website reads a page as HTML, too: it cannot build one with an element that does not end.
func TestNoElements(t *testing.T) {
	element := regexp.MustCompile(`<[A-Za-z/][^>]*>?`)
	for _, file := range documents(t) {
		prose(read(t, file), func(number int, line string) {
			for _, e := range element.FindAllString(inline.ReplaceAllString(line, ""), -1) {
				if !strings.Contains(e, "://") {
					t.Errorf("%s:%d: %s is no code", file, number, e)
				}
			}
		})
	}
}

// A Chinese page leads to Chinese pages.
func TestChineseLinksStayChinese(t *testing.T) {
	for _, page := range pages(t, filepath.Join(site.Docs, "zh")) {
		file := filepath.Join(site.Docs, "zh", page+".md")
		prose(read(t, file), func(number int, line string) {
			for _, m := range link.FindAllStringSubmatch(line, -1) {
				name, _, _ := strings.Cut(strings.TrimPrefix(m[1], "../"), "#")
				if _, err := os.Stat(filepath.Join(site.Docs, "zh", name)); err == nil && strings.HasPrefix(m[1], "../") && name != page+".md" {
					t.Errorf("%s:%d leads to the English %s", file, number, name)
				}
			}
		})
	}
}

func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, folder := range []string{site.Docs, filepath.Join(site.Docs, "zh"), ".."} {
		for _, page := range pages(t, folder) {
			files = append(files, filepath.Join(folder, page+".md"))
		}
	}
	return files
}

// anchors returns the anchors of a page's headings, as Git hosts and the site make them.
func anchors(text string) (all []string) {
	prose(text, func(_ int, line string) {
		if m := heading.FindStringSubmatch(line); m != nil {
			all = append(all, slug(m[1]))
		}
	})
	return all
}

// slug is the slugify of .vitepress/config.mjs.
func slug(title string) string {
	title = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(title, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r), r == '_', r == '-':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, title)
}
