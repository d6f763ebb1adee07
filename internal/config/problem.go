package config

import (
	"slices"
	"strings"
)

// A Problem is one thing wrong with a configuration.
type Problem struct {
	Where string // the place: "leaf.yaml:7", "LEAF_LISTEN", "--listen"; may be empty
	Key   string // the path of the key, as in segment.max_stock; may be empty
	Text  string // the fault, and its remedy
}

// String writes p on one line, without the key where the name of a variable or flag
// says it already.
func (p Problem) String() string {
	parts := []string{p.Where, p.Key, p.Text}
	if p.Where == env(p.Key) || p.Where == flag(p.Key) {
		parts = []string{p.Where, p.Text}
	}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), ": ")
}

// Problems are all the things wrong with a configuration, as an error.
type Problems []Problem

// Error writes one problem a line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
