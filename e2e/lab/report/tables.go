package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/e2e/lab"
)

// A report holds the results of a run.
type report struct {
	parts     []lab.Part
	results   []scenario
	simulated []lab.Schedules
	searches  []lab.Search
	days      string // of the simulator's schedules
	saboteurs []lab.Saboteur
	drawn     map[string]bool // by name: a picture next to the page
}

func read(dirs ...string) (r report, err error) {
	var results []lab.Result
	for _, dir := range dirs {
		err = errors.Join(err, add(&r.parts, dir, lab.Parts), add(&results, dir, lab.Results), add(&r.simulated, dir, lab.Simulated),
			add(&r.searches, dir, lab.Searches), add(&r.saboteurs, dir, lab.Saboteurs))
	}
	simulated, once := distinct(r.simulated), distinctResults(results)
	if twice := len(r.simulated) - len(simulated) + len(results) - len(once); twice > 0 {
		fmt.Printf("lab: %d results are left out: their seeds count already\n", twice)
	}
	r.parts = latest(r.parts, func(p lab.Part) string { return p.Name })
	r.saboteurs = latest(r.saboteurs, func(s lab.Saboteur) string { return s.Rule + "\n" + s.What + "\n" + s.Kind })
	r.results, r.simulated, r.days = sumResults(once), sumSchedules(simulated), days(simulated)
	return r, err
}

func add[T any](all *[]T, dir string, read func(dir string) ([]T, error)) error {
	more, err := read(dir)
	*all = append(*all, more...)
	return err
}

// latest returns the latest run of each part or saboteur, in the order of the first runs.
func latest[T any](all []T, name func(T) string) (last []T) {
	at := make(map[string]int)
	for _, one := range all {
		if i, again := at[name(one)]; again {
			last[i] = one
			continue
		}
		at[name(one)] = len(last)
		last = append(last, one)
	}
	return last
}

// text returns the tables.
func (r *report) text(now time.Time) string {
	text := []string{
		written(now, r.summary()),
		"Each client calls one server, also while that is killed, frozen or without its store. Servers hold\n" +
			"little in memory there, and leases are short, so that faults of the store reach the clients: that\n" +
			"is the silence. The name of a scenario leads to its picture. A scenario with several seeds ran\n" +
			"several times.",
	}
	for _, g := range []struct{ title, is string }{
		{"### Tags on real servers", "segment"}, {"### Worker IDs on real servers", "snowflake, uid"}, {"### Clients as they are", "clients"}, {"### Strict order on real servers", "strict order"},
		{"### A cluster without a database", "members"},
	} {
		some := slices.DeleteFunc(slices.Clone(r.results), func(c scenario) bool { return c.Scheme != g.is })
		if len(some) == 0 {
			continue
		}
		text = append(text, g.title, r.clusters(some), "The faults of one are repeated, in the folder `e2e`, by its seed:", repeat(some[0]))
		if table := matrix(some); table != "" {
			text = append(text, "How often each nemesis struck each of them, or why it does not:", table)
		}
		text = append(text, r.picture(some))
	}
	text = append(text, r.causes(), titled("### How long it takes", r.budget()))
	return strings.Join(slices.DeleteFunc(text, func(s string) bool { return s == "" }), "\n\n") + "\n"
}

// titled returns a table below its title; empty: the table is.
func titled(title, table string) string {
	if table == "" {
		return ""
	}
	return title + "\n\n" + table
}

// table returns a table in Markdown; columns whose title begins with a space are numbers.
func table(titles []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	var under []string
	for i, title := range titles {
		under = append(under, "---")
		if trimmed, ok := strings.CutPrefix(title, " "); ok {
			titles[i], under[i] = trimmed, "---:"
		}
	}
	line(titles)
	line(under)
	for _, row := range rows {
		line(row)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// wrap breaks a text into lines of at most so many characters.
func wrap(text string, most int) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}

func (r *report) clusters(some []scenario) string {
	var rows [][]string
	sum := scenario{Result: lab.Result{Nemeses: map[string]int{}}}
	for _, c := range some {
		name := c.Name()
		if r.drawn[c.Picture()] {
			name = fmt.Sprintf("[%s](%s)", name, pictures+c.Picture())
		}
		rows = append(rows, clusterRow(name, c))
		sum.add(c.Result)
	}
	sum.Limit, sum.seeds = "", nil
	rows = append(rows, clusterRow("**all**", sum))
	return table([]string{"Scenario", " Faults", " Answered calls", " Clients", " Ranges", " IDs", " Duplicates", " Within documented limits",
		" Longest silence", " Failed calls", " Seeds"}, rows)
}

func clusterRow(name string, c scenario) []string {
	documented := number(c.Documented)
	if c.Limit != "" {
		documented += " (" + c.Limit + ")"
	}
	return []string{name, strconv.Itoa(c.Strikes()), number(c.Answered), number(c.Clients), number(c.Ranges), number(c.IDs), number(c.Duplicates), documented,
		fmt.Sprintf("%.1f s", c.Silence.Seconds()), number(c.Failed), strings.Join(c.seeds, ", ")}
}

// repeat returns the command that repeats the faults of a scenario.
func repeat(c scenario) string {
	test, store, below := strings.Cut(c.Test, "/")
	if below {
		store = "/^" + store + "$"
	}
	return fmt.Sprintf("    LEAF_LAB=1 LEAF_SEED=%d go test . -v -run '^%s$%s'", c.Seed, test, store)
}

// matrix returns how often each nemesis struck each scenario, with the reasons below. Scenarios
// of a limit have one fault, which belongs to that.
func matrix(some []scenario) string {
	some = slices.DeleteFunc(slices.Clone(some), func(c scenario) bool { return c.Limit != "" })
	titles := []string{"Nemesis"}
	for _, c := range some {
		_, store, _ := strings.Cut(c.Name(), "/")
		titles = append(titles, " "+cmp.Or(store, c.Store))
	}
	var rows [][]string
	var reasons []string
	for _, name := range lab.Struck(plain(some)) {
		row := []string{name}
		for _, c := range some {
			cell := "**no reason**"
			if n := c.Nemeses[name]; n > 0 {
				cell = strconv.Itoa(n)
			} else if why := c.Holes[name]; why != "" {
				i := slices.Index(reasons, why)
				if i < 0 {
					i, reasons = len(reasons), append(reasons, why)
				}
				cell = letter(i)
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	var text strings.Builder
	text.WriteString(table(titles, rows))
	for i, why := range reasons {
		text.WriteString(fmt.Sprintf("\n%s* %s: %s", map[bool]string{true: "\n"}[i == 0], letter(i), strings.ReplaceAll(wrap(why, 94), "\n", "\n  ")))
	}
	return text.String()
}

// picture shows one picture of several.
func (r *report) picture(some []scenario) string {
	for _, c := range some {
		if r.drawn[c.Picture()] {
			return fmt.Sprintf("![%s: faults, calls answered and failed, and how long they took](%s)", c.Name(), pictures+c.Picture())
		}
	}
	return ""
}

// letter names a reason: a, b, … z, aa, ab, …
func letter(i int) string {
	if i < 26 {
		return string(rune('a' + i))
	}
	return letter(i/26-1) + letter(i%26)
}

func (r *report) schedules() string {
	var rows [][]string
	for _, s := range r.simulated {
		rows = append(rows, []string{s.Kind, number(s.Schedules), number(s.Faults), number(s.Answered), density(s), number(s.IDs), number(s.Searches), number(s.Undecided),
			fmt.Sprintf("%.0f h", s.Virtual.Hours()), cmp.Or(firstLine(s.Error), "none")})
	}
	return table([]string{"Kind", " Schedules", " Faults", " Answered calls", " Per fault", " IDs", " Searches for an order", " Undecided", " Virtual time", "Found"}, rows)
}

func (r *report) caught() string {
	var rows [][]string
	for _, s := range r.saboteurs {
		rows = append(rows, []string{s.Rule, s.What, s.Kind, number(s.Schedules), fmt.Sprintf("%.1f s", s.Took.Seconds()), sign(s.Sign)})
	}
	return table([]string{"Rule", "What is broken", "Scenario", " Schedules, or runs", " Time", "What is found"}, rows)
}

// sign shortens a finding to its kind. The words of a test are shown as code, for they may hold what
// Markdown or HTML would read as theirs.
func sign(found string) string {
	for _, s := range []string{"issued twice", "received nothing", "told of", "out of order", "false alarms", "behind the clock"} {
		if strings.Contains(found, s) {
			return map[string]string{"told of": "issued below what was observed"}[s] + map[bool]string{true: s}[s != "told of"]
		}
	}
	if found == "" {
		return "**nothing**"
	}
	return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(found) + "`"
}

func (r *report) budget() string {
	var rows [][]string
	var budget, took time.Duration
	for _, p := range r.parts {
		budget, took = budget+p.Budget, took+p.Took
		rows = append(rows, []string{p.Name, minutes(p.Budget), minutes(p.Took), map[bool]string{true: "green", false: "**red**"}[p.Error == ""]})
	}
	if len(rows) > 0 {
		rows = append(rows, []string{"**all**", minutes(budget), minutes(took), ""})
	}
	return table([]string{"Part", " Budget", " Took", "Outcome"}, rows)
}

func minutes(d time.Duration) string {
	return fmt.Sprintf("%d:%02d", int(d.Minutes()), int(d.Seconds())%60)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// number writes a number with commas.
func number(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// pictures is the folder of pictures, next to the page.
const pictures = "img/"

// mostBytes bounds a picture in the repository.
const mostBytes = 100_000

// copyPictures copies the pictures of the scenarios from the folder of a run.
func (r *report) copyPictures(from []string, to string) error {
	r.drawn = map[string]bool{}
	for i := range from {
		if err := r.copyPicturesOf(from[i], to); err != nil {
			return err
		}
	}
	return nil
}

func (r *report) copyPicturesOf(from, to string) error {
	for _, c := range r.results {
		picture, err := os.ReadFile(filepath.Join(from, c.Picture()))
		if errors.Is(err, fs.ErrNotExist) || len(picture) > mostBytes {
			continue
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, c.Picture()), picture, 0o600)
		}
		if err != nil {
			return err
		}
		r.drawn[c.Picture()] = true
	}
	return nil
}
