package site_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/site"
)

// Pages with phrases consist of them, and use each one.
func TestPhrases(t *testing.T) {
	files, err := filepath.Glob("phrases/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no phrases: %v", err)
	}
	for _, file := range files {
		page := strings.TrimSuffix(filepath.Base(file), ".json")
		phrases, err := site.PhrasesOf(page)
		if err != nil {
			t.Fatal(err)
		}
		for english, chinese := range phrases {
			if strings.Count(english, "#") != strings.Count(chinese, "#") {
				t.Errorf("site/%s: %q has another number of # than its Chinese", file, english)
			}
		}
		if page == "measured" {
			continue
		}
		_, keys := phrases.Translate(read(t, filepath.Join(site.Docs, page+".md")))
		for english := range phrases {
			if !slices.Contains(keys, english) {
				t.Errorf("docs/%s.md has no text %q any more: remove it from site/%s, or translate the new one", page, english, file)
			}
		}
		want, err := site.Chinese(page)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(read(t, filepath.Join(site.Docs, "zh", page+".md")), "\n")
		if body != want {
			t.Errorf("docs/zh/%s.md is not the English page with its phrases: run 'make translated NAME=%[1]s'", page)
		}
	}
}

func TestTranslate(t *testing.T) {
	phrases := site.Phrases{"One": "一", "two lines": "两行", "a cell": "格", "an item": "项", "# of #": "#（共 #）", "# a note": "# 注"}
	got, keys := phrases.Translate("# One\n\ntwo\nlines\n\n| a cell | x \\| y |\n|---|---|\n* an\n  item\n* 7 of 1,000.5\n* b: a note\n1. One\n\n    One\n* [other](img/x.svg)\n```\nOne\n```\n")
	want := "# 一\n\n两行\n\n| 格 | x \\| y |\n|---|---|\n* 项\n* 7（共 1,000.5）\n* b: 注\n1. 一\n\n    One\n* [other](../img/x.svg)\n```\nOne\n```\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if want := []string{"One", "two lines", "a cell", `x \| y`, "an item", "# of #", "# a note", "One", "[other](img/x.svg)"}; !slices.Equal(keys, want) {
		t.Errorf("keys %q, want %q", keys, want)
	}
}
