package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/bench"
)

// levels are the numbers of goroutines, or threads.
var levels = []int{1, 2, 4, 8}

// formatCeiling is how long 4096 IDs a millisecond take, each, in ns.
const formatCeiling = 1e6 / 4096.

// figures are those of all rows, by key and level.
type figures map[string]map[int]figure

// peers measures all rows in turn, round by round.
func peers(ctx context.Context, l *lab) (_ report, err error) {
	java, err := startJVM(ctx, l)
	if err != nil {
		return report{}, err
	}
	defer func() { err = errors.Join(err, java.stop()) }()
	all, opened := make(figures), make(map[string]func() bench.Source)
	for _, r := range bench.Rows {
		all[r.Key] = make(map[int]figure)
		if r.Open == nil {
			continue
		}
		if opened[r.Key], err = r.Open(); err != nil {
			return report{}, fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	var busy figure
	for range l.rounds {
		for _, r := range bench.Rows {
			for _, n := range levels {
				ns, share, err := l.once(r, opened[r.Key], java, n)
				if err != nil {
					return report{}, fmt.Errorf("%s: %w", r.Name, err)
				}
				all[r.Key][n] = append(all[r.Key][n], ns)
				if r.Key == "snowflake-paced" && n == 1 {
					busy = append(busy, share)
				}
			}
		}
	}
	found := all.found()
	found["paced-cpu"] = result{figure: busy}
	found["take-allocs"] = result{figure: allocations(opened["take"]())}
	return report{table: all.table(), picture: all.picture(), found: found}, nil
}

// once measures one row on n goroutines or threads, in ns per ID, and how much of a core that
// took of this process, in percent.
func (l *lab) once(r bench.Row, of func() bench.Source, java *jvm, n int) (ns, share float64, err error) {
	if of == nil {
		ns, err = java.measure(r.Key, n, l.slice)
		return ns, 0, err
	}
	before, began := processTime(), time.Now()
	ns, err = nanosPerCall(of, n, l.slice)
	share = 100 * (processTime() - before).Seconds() / time.Since(began).Seconds()
	return ns / max(1, r.Per), share, err
}

// allocations is how many of them a call makes.
func allocations(ids bench.Source) figure {
	return figure{testing.AllocsPerRun(1000, func() {
		if _, err := ids.Next(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, "take:", err)
		}
	})}
}

func (all figures) found() map[string]result {
	at := func(key string, n int) figure { return all[key][n] }
	fall := func(key string, n int) figure { return at(key, n).over(at(key, 1)) }
	var falls, beside []figure
	for _, n := range levels {
		beside = append(beside, at("uid-generator-cached", n).over(at("uid", n)))
		if n > 1 {
			falls = append(falls, fall("uid", n).over(fall("atomic", n)))
		}
	}
	byMedian := func(a, b figure) int { return int(1e6 * (a.median() - b.median())) }
	of := map[string]figure{
		"next":          at("buffer", 1).over(at("atomic", 1)),
		"next-all":      at("buffer", 2).over(at("atomic", 2)),
		"set":           at("set", 1).above(at("buffer", 1)),
		"set-all":       at("set", 2).above(at("buffer", 2)),
		"cursor-all":    at("cursor", 2).over(at("atomic", 2)),
		"cursor-rise":   at("cursor", 1).over(at("cursor", 2)),
		"take":          at("take", 1),
		"snowflake":     at("bwmarrin", 1).over(at("snowflake", 1)),
		"snowflake-2":   at("bwmarrin", 2).over(at("snowflake", 2)),
		"paced":         at("snowflake-paced", 1).over(constant(formatCeiling, len(at("snowflake-paced", 1)))),
		"uid-fall":      slices.MaxFunc(falls, byMedian),
		"uid-generator": slices.MinFunc(beside, byMedian),
		"cosid":         at("cosid-segment-chain", 1).over(at("cursor", 1)),
		"cosid-all":     at("cosid-segment-chain", 2).over(at("cursor", 2)),
	}
	found := make(map[string]result)
	for key, f := range of {
		found[key] = result{figure: f}
	}
	return found
}

func constant(x float64, n int) figure { return slices.Repeat(figure{x}, n) }

func (all figures) table() string {
	var t strings.Builder
	t.WriteString("| ns per ID, all goroutines together (least … most of the rounds on one) |")
	for _, n := range levels {
		fmt.Fprintf(&t, " %d |", n)
	}
	t.WriteString(" to the atomic add, 1 / 2 |\n|---|" + strings.Repeat("---|", len(levels)+1) + "\n")
	for _, r := range bench.Rows {
		f := all[r.Key]
		fmt.Fprintf(&t, "| %s (%s … %s) |", r.Name, short(f[1].least()), short(f[1].most()))
		for _, n := range levels {
			fmt.Fprintf(&t, " %s |", short(f[n].median()))
		}
		fmt.Fprintf(&t, " %.2g / %.2g |\n", f[1].over(all["atomic"][1]).median(), f[2].over(all["atomic"][2]).median())
	}
	return t.String()
}

func (all figures) picture() string {
	chart := bars{title: "time of one ID in ns, logarithmic: dark on one goroutine, light on 8"}
	for _, r := range bench.Rows {
		f := all[r.Key]
		chart.add(strings.ReplaceAll(r.Name, "`", ""), f[1].median(), f[8].median())
	}
	return chart.svg()
}
