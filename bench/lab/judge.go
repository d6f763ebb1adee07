package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A place is the row of its part's table that a goal judges, and the cell with its figure.
type place struct {
	begins string // the beginning of the row, after "| "
	column string // of the figure; "": it is not in the table
	number int    // of those in the cell
	over   string // the row whose cell divides the figure; "": none
}

// at is the place of a goal with a figure from outside the table.
func at(row string) place { return place{begins: row} }

// within reports whether the row of a table is that of the goal.
func (p place) within(line string) bool {
	return p.begins != "" && strings.HasPrefix(line, "| "+p.begins)
}

// judged returns a part's tables with a column of the goals of each row.
func judged(part, text string, found map[string]result) string {
	var out strings.Builder
	var table []string
	for line := range strings.Lines(strings.TrimSuffix(text, "\n") + "\n") {
		if strings.HasPrefix(line, "|") {
			table = append(table, strings.TrimSpace(line))
			continue
		}
		out.WriteString(judgedTable(part, table, found) + line)
		table = nil
	}
	return out.String() + judgedTable(part, table, found)
}

// judgedTable adds the column, unless no row has a goal.
func judgedTable(part string, table []string, found map[string]result) string {
	var out strings.Builder
	judges := false
	for i, line := range table {
		cell := " – |"
		switch i {
		case 0:
			cell = " goal |"
		case 1:
			cell = "---|"
		default:
			if said := verdicts(part, table, line, found); said != "" {
				cell, judges = " "+said+" |", true
			}
		}
		out.WriteString(line + cell + "\n")
	}
	if !judges && len(table) > 0 {
		return strings.Join(table, "\n") + "\n"
	}
	return out.String()
}

// verdicts are the goals of a row.
func verdicts(part string, table []string, line string, found map[string]result) string {
	var all []string
	for _, g := range goals {
		if r, ok := found[g.key]; ok && g.part == part && g.within(line) {
			all = append(all, strings.TrimPrefix(g.what, "the same, ")+": "+g.short(r))
		}
	}
	for _, g := range rowGoals {
		if g.part != part || !g.within(line) {
			continue
		}
		if f := g.read(table, line); f != nil {
			all = append(all, g.what+": "+g.short(result{figure: f}))
		}
	}
	return strings.Join(all, "; ")
}

// read takes the figure from the cell; nil: the table has none.
func (p place) read(table []string, line string) figure {
	f := p.cell(table, line)
	if p.over == "" || f == nil {
		return f
	}
	for _, other := range table[2:] {
		if strings.HasPrefix(other, "| "+p.over) {
			if by := p.cell(table, other); by != nil {
				return figure{f.median() / by.median()}
			}
		}
	}
	return nil
}

var numbers = regexp.MustCompile(`-?\d+(?:\.\d+)?(?:e[+-]\d+)?`)

// cell is a number of the row's cell, or all three of "median (least … most)".
func (p place) cell(table []string, line string) figure {
	cells := strings.Split(line, "|")
	for i, head := range strings.Split(table[0], "|") {
		if strings.TrimSpace(head) != p.column || i >= len(cells) {
			continue
		}
		var f figure
		for _, text := range numbers.FindAllString(cells[i], -1) {
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil
			}
			f = append(f, x)
		}
		switch {
		case len(f) == 3 && strings.Contains(cells[i], "…"):
			return f
		case p.number < len(f):
			return f[p.number:][:1]
		}
	}
	return nil
}

// short is the goal of a row in a cell: the limit, and the reason of a miss.
func (g goal) short(r result) string {
	limit, bound, reached := g.judge(r)
	if reached {
		return fmt.Sprintf("%s %s%s: yes", bound, short(limit), g.unit)
	}
	return fmt.Sprintf("%s %s%s: **no**, %s%s%s", bound, short(limit), g.unit, short(r.median()), g.unit, g.why())
}

// judge compares a figure with the goal, as the reader sees it.
func (g goal) judge(r result) (limit float64, bound string, reached bool) {
	limit = max(g.limit, r.limit)
	shown, _ := strconv.ParseFloat(short(r.median()), 64)
	if g.least {
		return limit, "at least", shown >= limit
	}
	return limit, "at most", shown <= limit
}

// why is the reason for a missed goal, and what shows it.
func (g goal) why() string {
	switch {
	case g.missed == "":
		return ""
	case g.evidence == "":
		return ": " + g.missed
	}
	return ": " + g.missed + " (" + g.evidence + ")"
}
