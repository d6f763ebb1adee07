package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/load"
)

// An experiment replaces its own rows of the table of goals, and all rows keep their order.
func TestUpdateGoals(t *testing.T) {
	first, second := goals[0], goals[1]
	table := updateGoals("", map[string]result{first.key: {figure: figure{1, 2, 3}}, second.key: {figure: figure{1, 1, 1}}})
	table = updateGoals(table, map[string]result{first.key: {figure: figure{1, 1, 5}}})
	want := "\n" + goalsHead + first.row(result{figure: figure{1, 1, 5}}) + second.row(result{figure: figure{1, 1, 1}}) + "\n"
	if table != want {
		t.Errorf("got\n%s\nwant\n%s", table, want)
	}
	if !strings.Contains(table, "| 1× | 1 … 5 | yes |") {
		t.Errorf("the median is 1 and at most 1.1 is asked:\n%s", table)
	}
	one := map[string]result{"resp-16": {figure: figure{1}}, "tls-resp-16": {figure: figure{2}}} // rows with one name
	if table = updateGoals("", one); updateGoals(table, nil) != table {
		t.Errorf("rows of two parts are mixed up:\n%s\n%s", table, updateGoals(table, nil))
	}
}

// An ID that comes twice, in whichever run, is an error.
func TestDistinct(t *testing.T) {
	all := newDistinct()
	all.add(&load.IDs{Ranges: []leaf.Range{{Start: 1, End: 5}, {Start: 7, End: 8}}})
	all.add(&load.IDs{Ranges: []leaf.Range{{Start: 5, End: 7}}})
	all.add(&load.IDs{Ranges: []leaf.Range{{Start: 60, End: 64}, {Start: 64, End: 200}}})
	if said, err := all.result(); err != nil || !strings.Contains(said, "All 147 IDs") {
		t.Errorf("%q, %v", said, err)
	}
	all.add(&load.IDs{Ranges: []leaf.Range{{Start: 4, End: 5}, {Start: 126, End: 130}, {Start: 199, End: 201}}})
	if said, err := all.result(); err == nil || all.twice.Load() != 6 || all.beyond.Load() != 0 {
		t.Errorf("six IDs came twice: %q, %v", said, err)
	}
	all.add(&load.IDs{Ranges: []leaf.Range{{Start: maxWireIDs - 1, End: maxWireIDs + 2}}})
	if all.beyond.Load() != 2 {
		t.Errorf("two IDs cannot be compared: %d", all.beyond.Load())
	}
}

// A report is published between the marks of its name alone.
func TestReplaceBetween(t *testing.T) {
	page := "a\n<!-- bench x -->\nold\n<!-- end x -->\nb\n<!-- bench y -->\n<!-- end y -->\n"
	got, err := replaceBetween(page, "x", func(string) string { return "new\n" })
	if want := strings.Replace(page, "old", "new", 1); err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	if _, err := replaceBetween(page, "z", func(string) string { return "" }); err == nil {
		t.Error("there are no marks of z")
	}
}

// The page has a place for each experiment, and publish writes there.
func TestPublish(t *testing.T) {
	const file = "docs/performance-tables.md"
	l := &lab{root: t.TempDir()}
	page, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(l.root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(l.root, file), page, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, e := range allExperiments() {
		if err := l.publish(e.name, report{table: "| table of " + e.name + " |"}, "*here*"); err != nil {
			t.Error(err)
		}
	}
	page, err = os.ReadFile(filepath.Join(l.root, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range allExperiments() {
		if !strings.Contains(string(page), "<!-- bench "+e.name+" -->\n\n| table of "+e.name+" |\n\n*here*\n\n<!-- end "+e.name+" -->\n") {
			t.Errorf("%s has no table of %s", file, e.name)
		}
	}
}

// Slow requests are explained by what happened meanwhile, and by nothing else.
func TestExplain(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	r := &tailRun{began: at(0)}
	r.saw("scrape", at(100), at(120))
	r.saw("listing", at(110), at(900))
	r.addCollections("gc 7 @2.000s 0%: 0.1+4.0+0.2 ms clock, 0.2+0/1/0+0.4 ms cpu, 7->7->3 MB, 8 MB goal, 2 P\n")
	r.slow = []span{{"", at(90), at(115)}, {"", at(880), at(890)}, {"", at(900), at(910)}, {"", at(2001), at(2003)}, {"", at(1000), at(1990)},
		{"", at(2002), at(2022)}, {"", at(2020), at(2031)}, {"", at(2031), at(2040)}}
	var text strings.Builder
	share := r.explain(&text)
	counted := regexp.MustCompile(` [^|]*\|\n`).ReplaceAllString(text.String(), "\n") // without the share of the time
	want := "| nothing of this | 3 | 990 |\n| collection of garbage | 2 | 20 |\n| listing | 2 | 25 |\n| no more, but a queue that it left | 1 | 11 |\n| scrape | 1 | 25 |\n"
	if !strings.HasSuffix(counted, want) || share != 62.5 {
		t.Errorf("%v %%:\n%s", share, text.String())
	}
	r.saw("scrape", at(110), at(130))
	if scrapes, nothing := r.timeOf("scrape"), r.timeOf("nothing of this"); scrapes != 30*time.Millisecond || nothing != 0 {
		t.Errorf("scrapes took %v, nothing %v", scrapes, nothing)
	}
}
