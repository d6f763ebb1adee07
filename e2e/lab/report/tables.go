package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/e2e/lab"
)

// A report is what a run came to.
type report struct {
	parts     []lab.Part
	results   []lab.Result
	simulated []lab.Schedules
	saboteurs []lab.Saboteur
	drawn     []string // names of pictures, beside the page
}

func read(dir string) (r report, err error) {
	if r.parts, err = lab.Parts(dir); err != nil {
		return r, err
	}
	if r.results, err = lab.Results(dir); err != nil {
		return r, err
	}
	if r.simulated, err = lab.Simulated(dir); err != nil {
		return r, err
	}
	r.saboteurs, err = lab.Saboteurs(dir)
	return r, err
}

// text returns what is written to the page.
func (r *report) text(now time.Time) string {
	text := []string{
		fmt.Sprintf("Written by `make lab` on %s, on %d processors.", now.Format(time.DateOnly), runtime.NumCPU()),
		r.summary(),
		"### Clusters of real servers", r.clusters(),
		"Each nemesis struck so often; in the holes stands why it does not.", r.matrix(),
	}
	for _, name := range r.drawn {
		text = append(text, fmt.Sprintf("![%s: faults, calls answered and failed](%s)", strings.TrimSuffix(name, ".svg"), name))
	}
	text = append(text, "### The simulator", r.schedules(), "### Saboteurs", r.caught(), "### How long it takes", r.budget())
	return strings.Join(slices.DeleteFunc(text, func(s string) bool { return s == "" }), "\n\n") + "\n"
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

// summary tells the sum of it all.
func (r *report) summary() string {
	var ids, twice, documented, failed int64
	faults := 0
	for _, c := range r.results {
		ids, twice, documented, failed = ids+c.IDs, twice+c.Duplicates, documented+c.Documented, failed+c.Failed
		faults += c.Strikes()
	}
	var simulated, schedules, simFaults int64
	for _, s := range r.simulated {
		simulated, schedules, simFaults = simulated+s.IDs, schedules+s.Schedules, simFaults+s.Faults
	}
	text := fmt.Sprintf("%s IDs in all: %s by real servers in %d scenarios with %d faults, %s by the simulator in %s schedules with %s faults. "+
		"Duplicates: %d, and %d within documented limits. Failed calls of clients of real servers: %s.",
		number(ids+simulated), number(ids), len(r.results), faults, number(simulated), number(schedules), number(simFaults),
		twice, documented, number(failed))
	return wrap(text, 100)
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

func (r *report) clusters() string {
	var rows [][]string
	sum := lab.Result{Test: "**all**", Nemeses: map[string]int{}}
	for _, c := range r.results {
		rows = append(rows, clusterRow(c))
		sum.Nemeses["all"] += c.Strikes()
		sum.IDs, sum.Duplicates, sum.Documented, sum.Failed = sum.IDs+c.IDs, sum.Duplicates+c.Duplicates, sum.Documented+c.Documented, sum.Failed+c.Failed
		sum.Silence = max(sum.Silence, c.Silence)
	}
	if len(rows) > 0 {
		rows = append(rows, clusterRow(sum))
	}
	return table([]string{"Scenario", " Faults", " IDs", " Duplicates", " Within documented limits", " Longest silence", " Failed calls"}, rows)
}

func clusterRow(c lab.Result) []string {
	documented := strconv.FormatInt(c.Documented, 10)
	if c.Limit != "" {
		documented += " (" + c.Limit + ")"
	}
	return []string{strings.TrimPrefix(c.Test, "Test"), strconv.Itoa(c.Strikes()), number(c.IDs), number(c.Duplicates), documented,
		c.Silence.Round(100 * time.Millisecond).String(), number(c.Failed)}
}

// matrix returns how often each nemesis struck each scenario, with the reasons below.
func (r *report) matrix() string {
	titles := []string{"Nemesis"}
	for _, c := range r.results {
		titles = append(titles, " "+strings.TrimPrefix(c.Test, "Test"))
	}
	var rows [][]string
	var reasons []string
	for _, name := range lab.Struck(r.results) {
		row := []string{name}
		for _, c := range r.results {
			cell := "–"
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
		perMinute := float64(s.Schedules) / max(s.Took.Minutes(), 1e-9)
		rows = append(rows, []string{s.Kind, number(s.Schedules), number(int64(perMinute)), number(s.Faults), number(s.IDs),
			fmt.Sprintf("%.0f h", s.Virtual.Hours()), cmp.Or(firstLine(s.Error), "none")})
	}
	return table([]string{"Kind", " Schedules", " in a minute", " Faults", " IDs", " Virtual time", "Found"}, rows)
}

func (r *report) caught() string {
	var rows [][]string
	for _, s := range r.saboteurs {
		rows = append(rows, []string{s.Rule, s.What, s.Kind, number(s.Schedules), fmt.Sprintf("%.1f s", s.Took.Seconds()), cmp.Or(sign(s.Sign), "**nothing**")})
	}
	return table([]string{"Rule", "What is broken", "Kind", " Schedules", " Time", "What is found"}, rows)
}

// sign shortens what was found to its kind.
func sign(found string) string {
	for _, s := range []string{"issued twice", "received nothing", "told of", "out of order"} {
		if strings.Contains(found, s) {
			return map[string]string{"told of": "issued below what was observed"}[s] + map[bool]string{true: s}[s != "told of"]
		}
	}
	return found
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

// mostBytes bounds a picture that is kept in the repository.
const mostBytes = 100_000

// pictures copies one picture of each kind of scenario beside the page.
func (r *report) pictures(dir, to string) error {
	for kind, pattern := range map[string]string{"lab-segment.svg": "[mpre]*.svg", "lab-leases.svg": "leases-*.svg"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			picture, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if len(picture) > mostBytes {
				continue
			}
			if err := os.WriteFile(filepath.Join(to, kind), picture, 0o600); err != nil {
				return err
			}
			r.drawn = append(r.drawn, kind)
			break
		}
	}
	slices.Sort(r.drawn)
	return nil
}
