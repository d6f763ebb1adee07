package site

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Phrases map the English texts of a page to Chinese ones: headings, paragraphs, list items and cells
// of tables. The Chinese pages of the reference and of the measurements consist of them, so these
// pages follow the code as the English ones do. A # in both texts stands for any number.
type Phrases map[string]string

// measured names the phrases for texts of measurements, which may come and go with each run.
const measured = "measured"

// PhrasesOf returns the phrases of a page, nil for a page that people translate.
func PhrasesOf(page string) (phrases Phrases, err error) {
	text, err := os.ReadFile(filepath.Join("phrases", page+".json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return phrases, json.Unmarshal(text, &phrases)
}

var (
	marked = regexp.MustCompile(`^(#{1,6} |\* |\d+\. )(.*)$`)
	cells  = regexp.MustCompile(`(?:\\\||[^|])+`)
	number = regexp.MustCompile(`\d(?:[\d,.]*\d)?|^[a-z]:`) // or the letter of a note
)

// find returns the Chinese of a text and the key of its phrase. A text without a phrase stays English.
func (p Phrases) find(s string) (chinese, key string) {
	if zh, ok := p[s]; ok {
		return zh, s
	}
	key = number.ReplaceAllString(s, "#")
	zh, ok := p[key]
	if !ok {
		return s, s
	}
	for _, n := range number.FindAllString(s, -1) {
		zh = strings.Replace(zh, "#", n, 1)
	}
	return zh, key
}

// Translate returns a page in Chinese, and the keys of all texts in it.
func (p Phrases) Translate(english string) (chinese string, keys []string) {
	var out []string
	var text []string // the lines of a paragraph or an item so far
	phrase := func(s string) string {
		zh, key := p.find(s)
		keys = append(keys, key)
		return zh
	}
	flush := func() {
		if len(text) == 0 {
			return
		}
		whole := strings.Join(text, " ")
		if m := marked.FindStringSubmatch(whole); m != nil {
			out = append(out, m[1]+phrase(m[2]))
		} else {
			out = append(out, phrase(whole))
		}
		text = nil
	}
	code := false
	for line := range strings.SplitSeq(strings.TrimSuffix(english, "\n"), "\n") {
		fence := strings.HasPrefix(line, "```")
		indented := len(text) == 0 && strings.HasPrefix(line, "    ")
		if marked.MatchString(line) || fence || code || line == "" || line[0] == '|' {
			flush()
		}
		switch {
		case fence || code || indented || line == "" || strings.HasPrefix(line, "|--") || strings.HasPrefix(line, "| --"):
			out = append(out, line)
		case line[0] == '|':
			out = append(out, cells.ReplaceAllStringFunc(line, func(cell string) string {
				s := strings.TrimSpace(cell)
				return strings.Replace(cell, s, phrase(s), 1)
			}))
		default:
			text = append(text, strings.TrimSpace(line))
		}
		code = code != fence
	}
	flush()
	return strings.ReplaceAll(strings.Join(out, "\n")+"\n", "](img/", "](../img/"), keys
}
