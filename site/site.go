// Package site checks the pages of docs/, which `make site` turns into a website: each page is in
// the navigation, links lead somewhere, and each Chinese page is up to date with the English one.
//
// A Chinese page begins with a comment that holds the digest of the English page it translates.
// `make translated NAME=page` writes it, once the Chinese text is right.
package site

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Docs is the folder of the pages, as seen from this one.
const Docs = "../docs"

// Pages returns the names of the pages in a folder, without .md.
func Pages(folder string) (names []string, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.md"))
	for _, file := range files {
		names = append(names, strings.TrimSuffix(filepath.Base(file), ".md"))
	}
	return names, err
}

// A Section is a part of the navigation.
type Section struct {
	English string   `json:"en"`
	Chinese string   `json:"zh"`
	Pages   []string `json:"pages"`
}

// Navigation returns the sections in their order.
func Navigation() (sections []Section, err error) {
	text, err := os.ReadFile("navigation.json")
	if err != nil {
		return nil, err
	}
	return sections, json.Unmarshal(text, &sections)
}

var stamp = regexp.MustCompile(`\A<!-- english: ([0-9a-f]+) -->\n`)

// Translated returns the digest at the beginning of a Chinese page; "" without one.
func Translated(text string) string {
	if m := stamp.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// Digest returns the digest of an English page.
func Digest(page string) (string, error) {
	text, err := os.ReadFile(filepath.Join(Docs, page+".md"))
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6]), err
}

// Stamp declares that the Chinese page is up to date with the English one. It writes the whole page
// if the page has phrases.
func Stamp(page string) error {
	digest, err := Digest(page)
	if err != nil {
		return err
	}
	file := filepath.Join(Docs, "zh", page+".md")
	text, err := Chinese(page)
	if err != nil {
		return err
	}
	body := stamp.ReplaceAllString(text, "")
	return os.WriteFile(file, fmt.Appendf(nil, "<!-- english: %s -->\n%s", digest, body), 0o644)
}

// Chinese returns the text of a Chinese page. Phrases make it if the page has any.
func Chinese(page string) (string, error) {
	phrases, err := PhrasesOf(page)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(Docs, "zh")
	if phrases != nil {
		folder = Docs
	}
	text, err := os.ReadFile(filepath.Join(folder, page+".md"))
	if err != nil || phrases == nil {
		return string(text), err
	}
	all, err := PhrasesOf(measured)
	if err != nil {
		return "", err
	}
	maps.Copy(all, phrases)
	chinese, _ := all.Translate(string(text))
	return chinese, nil
}
