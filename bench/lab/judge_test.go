package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A table shows the goals of its rows: those from outside it and those of its own cells.
func TestJudged(t *testing.T) {
	const head = "| server | load | requests a second | " + wireCPU + " | p99, ms |"
	table := head + "\n|---|---|---|---|---|\n" +
		"| nginx, `return 200` | closed loop | 100 | 5 (4 … 6) | 1 |\n" +
		"| Leaf, `/api/segment/get/{key}` | closed loop | 100 | 6 (4 … 6) | 1 |\n" +
		"| Leaf, `/v1/ids/segment/{key}` | closed loop | 100 | 8 (4 … 9) | 1 |\n\nend"
	got := judged("http", table, map[string]result{"http": {figure: figure{1.2}}, "http-allocs": {figure: figure{0}}})
	want := head + " goal |\n|---|---|---|---|---|---|\n" +
		"| nginx, `return 200` | closed loop | 100 | 5 (4 … 6) | 1 | – |\n" +
		"| Leaf, `/api/segment/get/{key}` | closed loop | 100 | 6 (4 … 6) | 1 | HTTP ID route, CPU of a request to nginx: at most 1.3×: yes;" +
		" HTTP ID route, allocations a request: at most 0.01: yes |\n" +
		"| Leaf, `/v1/ids/segment/{key}` | closed loop | 100 | 8 (4 … 9) | 1 | CPU to nginx: at most 1.3×: **no**, 1.6×: nearly all of it is the system calls (a profile) |\n\nend\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if plain := "| a | b |\n|---|---|\n| 1 | 2 |\n"; judged("peers", plain, nil) != plain {
		t.Error("a table without goals has no column of them")
	}
}

// A cell has one number, several, or a median with its spread.
func TestCell(t *testing.T) {
	table := []string{"| x | one | two | spread |", "|---|---|---|---|", "| a, 7 | 1.67e+10 | 30 (0.5) | -2 (-5 … 8) |", "| b | 2 | 4 / 3 | 4 (1 … 9) |"}
	for _, c := range []struct {
		place
		want float64
	}{
		{place{begins: "a", column: "one"}, 1.67e10},
		{place{begins: "a", column: "two"}, 30},
		{place{begins: "a", column: "two", number: 1}, 0.5},
		{place{begins: "a", column: "spread"}, -2},
		{place{begins: "a", column: "spread", over: "b"}, -0.5},
	} {
		if f := c.read(table, table[2]); f == nil || f.median() != c.want {
			t.Errorf("%+v: %v, want %v", c.place, f, c.want)
		}
	}
	for _, p := range []place{{column: "none"}, {column: "one", number: 1}, {column: "one", over: "c"}} {
		if f := p.read(table, table[2]); f != nil {
			t.Errorf("%+v: %v, want nothing", p, f)
		}
	}
}

// Every goal of a row finds its row and its figure in the page, where its part was measured.
func TestRowGoalsFindTheirRows(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("../..", "docs/performance-tables.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range allExperiments() {
		var text string
		_, err := replaceBetween(string(page), e.name, func(old string) string { text = old; return old })
		if err != nil {
			t.Fatal(err)
		}
		var tables [][]string
		for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
			if strings.HasPrefix(block, "|") {
				tables = append(tables, strings.Split(strings.TrimSpace(block), "\n"))
			}
		}
		for _, g := range goals {
			if len(tables) > 0 && g.part == e.name && g.begins != "" && !found(tables, g.place) {
				t.Errorf("%s: the goal %q has no row %q", e.name, g.what, g.begins)
			}
		}
		for _, g := range rowGoals {
			if len(tables) > 0 && g.part == e.name && !found(tables, g.place) {
				t.Errorf("%s: no row %q with a figure in %q", e.name, g.begins, g.column)
			}
		}
	}
}

func found(tables [][]string, p place) bool {
	for _, table := range tables {
		for _, line := range table {
			if p.within(line) && (p.column == "" || p.read(table, line) != nil) {
				return true
			}
		}
	}
	return false
}
