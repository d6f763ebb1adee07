package main

import (
	"context"
	"fmt"
	"strings"
)

// levels are the numbers of goroutines, or threads.
var levels = []int{1, 2, 4, 8}

// A beside is a pair of rows whose ratio is a goal, on one goroutine and on all cores.
type beside struct {
	ours, theirs string
	at           int // goroutines
	goal         float64
}

var besides = []beside{
	{"`segment.Buffer.Next`", "bare atomic add", 1, 1 / 1.1},
	{"`segment.Buffer.Next`", "bare atomic add", 2, 1 / 1.1},
	{"`segment.Cursor`, one each", "bare atomic add", 2, 1 / 0.3},
	{"`snowflake.Generator`, burst", "bwmarrin/snowflake", 1, 40},
	{"`snowflake.Generator`, burst", "bwmarrin/snowflake", 2, 25},
	{"`snowflake.Generator`, uid cached", "uid-generator cached (JVM)", 2, 5},
	{"`segment.Cursor`, one each", "CosId `SegmentChainId` (JVM)", 1, 3},
	{"`segment.Cursor`, one each", "CosId `SegmentChainId` (JVM)", 2, 10},
	{"`segment.Buffer.Next`", "CosId `SegmentChainId` (JVM)", 2, 0},
	{"`segment.Buffer.Next`", "Java Leaf's design: RWMutex", 2, 0},
}

// measured are the figures of a row, by level.
type measured []figure

// peers measures all rows in turn, round by round.
func peers(ctx context.Context, l *lab) (report, error) {
	java, err := startJVM(ctx, l)
	if err != nil {
		return report{}, err
	}
	all := make([]measured, len(rows))
	opened := make([]func() source, len(rows))
	for i, r := range rows {
		all[i] = make(measured, len(levels))
		if r.open == nil {
			continue
		}
		if opened[i], err = r.open(); err != nil {
			return report{}, fmt.Errorf("%s: %w", r.name, err)
		}
	}
	for range l.rounds {
		for i, r := range rows {
			for at, n := range levels {
				ns, err := l.once(r, opened[i], java, n)
				if err != nil {
					return report{}, fmt.Errorf("%s: %w", r.name, err)
				}
				all[i][at] = append(all[i][at], ns)
			}
		}
	}
	return report{table: peersTable(all) + "\n" + besidesTable(all), picture: bars(all)}, java.stop()
}

// once measures one row on n goroutines or threads, in ns per ID.
func (l *lab) once(r row, of func() source, java *jvm, n int) (ns float64, err error) {
	if of == nil {
		return java.measure(r.jvm, n, l.slice)
	}
	ns, err = nanosPerCall(of, n, l.slice)
	return ns / max(1, r.per), err
}

func peersTable(all []measured) string {
	var t strings.Builder
	t.WriteString("| ns per ID (least … most of the rounds on one goroutine) |")
	for _, n := range levels {
		fmt.Fprintf(&t, " %d |", n)
	}
	t.WriteString(" to the atomic add, 1 / 2 |\n|---|" + strings.Repeat("---|", len(levels)+1) + "\n")
	for i, r := range rows {
		fmt.Fprintf(&t, "| %s (%.3g … %.3g) |", r.name, all[i][0].least(), all[i][0].most())
		for at := range levels {
			fmt.Fprintf(&t, " %.3g |", all[i][at].median())
		}
		fmt.Fprintf(&t, " %.2g / %.2g |\n", all[i][0].median()/all[0][0].median(), all[i][1].median()/all[0][1].median())
	}
	return t.String()
}

func besidesTable(all []measured) string {
	var t strings.Builder
	t.WriteString("| beside | goroutines | times as fast | goal |\n|---|---|---|---|\n")
	for _, b := range besides {
		goal := "–"
		if b.goal > 0 {
			goal = fmt.Sprintf("%.2g", b.goal)
		}
		fmt.Fprintf(&t, "| %s : %s | %d | %.3g | %s |\n", b.ours, b.theirs, b.at, medianOf(all, b.theirs, b.at)/medianOf(all, b.ours, b.at), goal)
	}
	return t.String()
}

func medianOf(all []measured, name string, goroutines int) float64 {
	for i, r := range rows {
		for at, n := range levels {
			if r.name == name && n == goroutines {
				return all[i][at].median()
			}
		}
	}
	panic("no row " + name)
}
