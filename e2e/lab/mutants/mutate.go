package main

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

const importLine = `; import mutant "github.com/leaf-id/leaf/internal/mutant"`

var packageClause = regexp.MustCompile(`(?m)^package \w+`)

// A numbered fault is one that a copy has, under its number.
type numbered struct {
	fault
	n int
}

// mutate returns the text of a file with faults in it. All lines keep their numbers.
func mutate(text string, faults []numbered) string {
	type ranked struct {
		edit
		n      int
		closes bool
	}
	var edits []ranked
	for _, f := range faults {
		for _, e := range f.edits(f.n) {
			edits = append(edits, ranked{e, f.n, e.at == e.end && e.start < e.end})
		}
	}
	slices.SortStableFunc(edits, func(a, b ranked) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.closes != b.closes: // what ends here goes first
			return map[bool]int{true: -1, false: 1}[a.closes]
		case a.closes: // inner ones first
			return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(b.n, a.n))
		}
		return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(b.end, a.end), cmp.Compare(a.n, b.n))
	})
	var out strings.Builder
	done := 0
	for _, e := range edits {
		out.WriteString(text[done:e.at])
		out.WriteString(e.text)
		done = e.at + e.length
	}
	out.WriteString(text[done:])
	at := packageClause.FindStringIndex(out.String())
	return out.String()[:at[1]] + importLine + out.String()[at[1]:]
}
