package leaf_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// A graph has the boxes of a picture, each with the boxes that its arrows point to.
type graph map[string][]string

func (g graph) box(name string) {
	if _, ok := g[name]; !ok {
		g[name] = nil
	}
}

func (g graph) arrow(from, to string) {
	if from != to && !slices.Contains(g[from], to) {
		g[from] = append(g[from], to)
	}
}

func (g graph) names() []string { return slices.Sorted(maps.Keys(g)) }

// reaches reports whether one arrow or more lead from one box to another.
func (g graph) reaches(from, to string) bool {
	seen := map[string]bool{}
	for next := slices.Clone(g[from]); len(next) > 0; next = next[1:] {
		if next[0] == to {
			return true
		}
		if !seen[next[0]] {
			seen[next[0]] = true
			next = append(next, g[next[0]]...)
		}
	}
	return false
}

// needed returns the arrows from a box without those that another path implies.
func (g graph) needed(from string) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for _, to := range g[from] {
			implied := slices.ContainsFunc(g[from], func(other string) bool { return other != to && g.reaches(other, to) })
			if !implied && !yield(to) {
				return
			}
		}
	})
}

// picture draws the graph as a Mermaid flow chart.
func (g graph) picture(names []string) string {
	var b strings.Builder
	b.WriteString("```mermaid\nflowchart TD\n")
	for _, name := range names {
		fmt.Fprintf(&b, "    %s[%q]\n", node(name), label(name))
	}
	for _, from := range names {
		for _, to := range g.needed(from) {
			fmt.Fprintf(&b, "    %s --> %s\n", node(from), node(to))
		}
	}
	b.WriteString("```\n")
	return b.String()
}

// node is the name of a box in Mermaid's language.
func node(name string) string {
	return strings.NewReplacer("/", "_", " ", "_", "-", "_", ".", "root").Replace(name)
}

// label is the text in a box.
func label(name string) string { return strings.Replace(name, ".", "leaf (the root)", 1) }
