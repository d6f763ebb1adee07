package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/e2e/lab"
)

// must fails the test on an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A run with a failed part still writes a page, with the results of the others.
func TestPage(t *testing.T) {
	dir, evening := t.TempDir(), t.TempDir()
	must(t, (&lab.Part{Name: "simulator", Budget: time.Minute, Took: 90 * time.Second, Error: "exit status 1"}).Save(dir))
	must(t, (&lab.Part{Name: "clusters", Budget: time.Minute, Took: 31 * time.Second}).Save(dir))
	for _, c := range []lab.Result{
		{Test: "TestCluster/redis", Scheme: "segment", Seed: 17, Answered: 1500, Clients: 10, Ranges: 30, IDs: 12_345_678_901, Failed: 7, Silence: 1234 * time.Millisecond,
			Nemeses: map[string]int{"killed": 3}, Holes: map[string]string{"fail-over": "there is one server"}},
		{Test: "TestClusterLimits/pair", Scheme: "segment", Documented: 1002, Limit: "no memory",
			Causes: []lab.Cause{{First: "s0.1", Second: "s1.2", IDs: 1002, Within: leaf.Range{Start: 5, End: 1007}, Why: "it forgot"}}, Nemeses: map[string]int{"lost": 1}},
		{Test: "TestCluster/pair", Scheme: "segment", Nemeses: map[string]int{"fail-over": 1, "killed": 1}},
		{Test: "TestLeases/etcd", Scheme: "snowflake, uid", Seed: 18, Duplicates: 1, Nemeses: map[string]int{"paused": 1}},
		{Test: "TestLeases/mariadb", Scheme: "snowflake, uid", Seed: 19, Answered: 1000, IDs: 1000, Nemeses: map[string]int{"killed": 2}},
	} {
		must(t, c.Save(dir))
	}
	must(t, (&lab.Result{Test: "TestCluster/redis", Scheme: "segment", Seed: 27, Answered: 500, Clients: 2, Ranges: 10, IDs: 1000,
		Nemeses: map[string]int{"killed": 1}}).Save(evening))
	must(t, (&lab.Schedules{Kind: "tags", Schedules: 100, IDs: 99, Searches: 11, Undecided: 1, Took: time.Second, Error: "1 duplicates: issued twice\nand more"}).Save(dir))
	must(t, (&lab.Saboteur{Rule: "CAS", What: "no compare", Kind: "tags", Schedules: 2, Took: time.Second, Sign: "3 duplicates: issued twice: a and b"}).Save(dir))
	must(t, (&lab.Saboteur{Rule: "W9 wait", What: "no wait", Kind: "losses", Schedules: 3000}).Save(dir))
	must(t, os.WriteFile(filepath.Join(dir, "lab-leases-mariadb.svg"), []byte("<svg/>"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "lab-cluster-redis.svg"), make([]byte, mostBytes+1), 0o600))
	must(t, (&lab.Search{Test: "TestLinearizable/etcd", Calls: 99}).Save(dir))
	page := filepath.Join(t.TempDir(), "page.md")
	must(t, os.Mkdir(filepath.Join(filepath.Dir(page), pictures), 0o700))
	must(t, os.WriteFile(page, []byte("# Title\n\n"+sums+"former\n"+end+simulator+"former\n"+end+"\nrest\n"), 0o600))
	must(t, os.WriteFile(detail(page), []byte("# Detail\n\n"+saboteurs+"former\n"+end+begin+"former\n"+end+simulator+"former\n"+end+"\nrest\n"), 0o600))
	for range 2 { // again changes nothing
		if err := run(t.Context(), "", "", dir+","+evening, page); !errors.Is(err, errShare) {
			t.Fatalf("got %v", err)
		}
	}
	wantPage(t, page,
		"# Title\n\n"+sums, end+"\nrest\n", "**3,000 answered calls** of real servers to 12 distinct clients", "in 5 scenarios with 10 faults",
		"12,345,680,901 IDs", "**1 of them came twice**; 1,002 more did within documented limits", "66.7 %, is that of\n  Cluster/redis.",
		"* 1 searches for an order of the calls to a store; undecided: 0.\n\n"+end+simulator,
		"**0 answered calls of the simulator** in 100 schedules", "* 11 searches for an order of the calls to a store; undecided: 1.")
	wantPage(t, detail(page),
		"# Detail\n\n"+saboteurs, end+begin, end+"\nrest\n",
		"| Cluster/redis | 4 | 2,000 | 12 | 40 | 12,345,679,901 | 0 | 0 | 1.2 s | 7 | 17, 27 |",
		"| ClusterLimits/pair | 1 | 0 | 0 | 0 | 0 | 0 | 1,002 (no memory) |",
		"| ClusterLimits/pair | s0.1 | s1.2 | 1,002 | [5, 1007) | it forgot |",
		"| **all** | 7 |", "| fail-over | 1 | a |\n| killed | 1 | 4 |\n\n* a: there is one server", "LEAF_SEED=0 go test . -v -run '^TestCluster$/^pair$'",
		"| [Leases/mariadb](img/lab-leases-mariadb.svg) | 2 | 1,000 | 0 | 0 | 1,000 | 0 | 0 | 0.0 s | 0 | 19 |", "](img/lab-leases-mariadb.svg)\n\n### Dup",
		"| killed | **no reason** | 2 |\n| paused | 1 | **no reason** |",
		"| tags | 100 | 0 | 0 | 0.0 | 99 | 11 | 1 | 0 h | 1 duplicates: issued twice |", "| CAS | no compare | tags | 2 | 1.0 s | issued twice |",
		"| W9 wait | no wait | losses | 3,000 | 0.0 s | **nothing** |", "| simulator | 1:00 | 1:30 | **red** |", "| **all** | 2:00 | 2:01 |")
}

// wantPage checks the text of a page, and that nothing of its former text is left.
func wantPage(t *testing.T, page string, want ...string) {
	t.Helper()
	text, err := os.ReadFile(page)
	must(t, err)
	for _, want := range want {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q:\n%s", filepath.Base(page), want, text)
		}
	}
	if strings.Contains(string(text), "former") || strings.Contains(string(text), "lab-cluster") || strings.Count(string(text), begin) > 1 {
		t.Errorf("%s has too much:\n%s", filepath.Base(page), text)
	}
}

// Evenings add up: no schedule counts twice, whichever folders are named.
func TestEvenings(t *testing.T) {
	day := time.Date(2026, 11, 25, 0, 0, 0, 0, time.UTC)
	seed := func(days, i int) uint64 { return uint64(day.AddDate(0, 0, days).UnixNano()) + uint64(i) }
	first, second, copied := t.TempDir(), t.TempDir(), t.TempDir()
	tags := lab.Schedules{Kind: "tags", Schedules: 10, Answered: 700, IDs: 9000, Faults: 10, Took: 2 * time.Second, First: seed(0, 0), Last: seed(0, 9)}
	next, other, again, later := tags, tags, tags, tags
	next.First, next.Last = seed(0, 10), seed(0, 19)
	other.Kind = "leases" // its schedules with these seeds are others
	again.First, again.Last = seed(0, 19), seed(0, 28)
	later.First, later.Last = seed(3, 0), seed(3, 9)
	old := lab.Schedules{Kind: "tags", Schedules: 1, Answered: 70, Faults: 1, Took: time.Second}
	for dir, all := range map[string][]lab.Schedules{first: {old, tags, next, other}, second: {again, later}, copied: {old, tags, next, other}} {
		for _, s := range all {
			must(t, s.Save(dir))
		}
	}
	if r, err := read(first); err != nil || !strings.Contains(r.simulator(), "faults, on 2026-11-25:") {
		t.Errorf("of one evening: %s %v", r.simulator(), err)
	}
	r, err := read(first, second, copied, first)
	must(t, err)
	want := "* **2,870 answered calls of the simulator** in 41 schedules with 41 faults, from 2026-11-25 to 2026-11-28: 36,000 " +
		"IDs. For each fault there are 70.0 answers."
	if got := strings.Join(strings.Fields(r.simulator()), " "); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// A run of the simulator alone leaves the sum of real servers as it was.
func TestPageOfSimulator(t *testing.T) {
	dir, page := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	must(t, (&lab.Schedules{Kind: "tags", Schedules: 2, Answered: 30, Faults: 10}).Save(dir))
	for _, name := range []string{page, detail(page)} {
		must(t, os.WriteFile(name, []byte(sums+"mine\n"+end+begin+"mine\n"+end+simulator+"former\n"+end), 0o600))
	}
	must(t, run(t.Context(), "", "", dir, page))
	for _, name := range []string{page, detail(page)} {
		wantPage(t, name, sums+"mine\n"+end+begin+"mine\n"+end+simulator, "**30 answered calls of the simulator** in 2 schedules with 10 faults: 0 IDs.")
	}
	wantPage(t, detail(page), "| tags | 2 | 10 | 30 | 3.0 |")
}

// A whole of which one scenario has most, or whose searches do not decide, is red.
func TestBalanced(t *testing.T) {
	equal := func(n int) (r report) {
		for range n {
			r.results = append(r.results, scenario{Result: lab.Result{Answered: 7}})
		}
		return r
	}
	ten, nine := equal(10), equal(9)
	if err := ten.balanced(); err != nil {
		t.Error(err)
	}
	if err := nine.balanced(); !errors.Is(err, errShare) {
		t.Errorf("got %v", err)
	}
	ten.simulated = []lab.Schedules{{Kind: "tags", Answered: 100, Faults: 1, Searches: 100, Undecided: 1}}
	if err := ten.balanced(); err != nil {
		t.Error(err)
	}
	ten.simulated[0].Answered++
	if err := ten.balanced(); !errors.Is(err, errFewFaults) {
		t.Errorf("got %v", err)
	}
	ten.simulated = []lab.Schedules{{Kind: "tags", Answered: 100, Faults: 1, Searches: 10_000}}
	ten.searches = []lab.Search{{}, {Undecided: true}}
	if err := ten.balanced(); !errors.Is(err, errUndecided) {
		t.Errorf("got %v", err)
	}
}

// A kept run that failed, or did not notice a broken rule, is red, also behind later ones that did not.
func TestKeptFailures(t *testing.T) {
	for _, c := range []struct {
		with report
		want error
	}{
		{report{results: []scenario{{Result: lab.Result{Test: "TestA", Duplicates: 1}}}}, errFailed},
		{report{results: sumResults([]lab.Result{{Test: "TestA", Error: "out of order\nand more"}, {Test: "TestA", Seed: 2, Nemeses: map[string]int{"killed": 1}}})}, errFailed},
		{report{simulated: []lab.Schedules{{Kind: "tags", Error: "issued twice"}}}, errFailed},
		{report{saboteurs: []lab.Saboteur{{Rule: "CAS"}, {Rule: "CAS", Sign: "issued twice"}}}, errUnnoticed},
		{report{results: []scenario{{}}, simulated: []lab.Schedules{{Kind: "tags"}}, saboteurs: []lab.Saboteur{{Sign: "issued twice"}}}, nil},
	} {
		if err := c.with.balanced(); !errors.Is(err, c.want) {
			t.Errorf("got %v, want %v", err, c.want)
		}
	}
	r := report{results: sumResults([]lab.Result{{Test: "TestA", Error: "out of order\nand more"}, {Test: "TestB", Duplicates: 2}})}
	if text := r.summary(); !strings.Contains(text, "* **A check failed:** A: out of order; B: 2 IDs came twice.\n") {
		t.Errorf("the summary is\n%s", text)
	}
}

// A run of real servers counts once, whichever folders are named.
func TestRunCountsOnce(t *testing.T) {
	first, copied := t.TempDir(), t.TempDir()
	run := lab.Result{Test: "TestCluster/redis", Seed: 17, Answered: 100, Took: time.Minute}
	again, other := run, run
	again.Took = 2 * time.Minute // the faults of the seed once more
	other.Test = "TestCluster/etcd"
	for dir, all := range map[string][]lab.Result{first: {run, again, other}, copied: {run, other}} {
		for _, r := range all {
			must(t, r.Save(dir))
		}
	}
	r, err := read(first, copied, first)
	must(t, err)
	if text := r.summary(); !strings.Contains(text, "**300 answered calls** of real servers") {
		t.Errorf("the summary is\n%s", text)
	}
}

// A run of the saboteurs alone leaves the rest of the page as it was.
func TestPageOfSaboteurs(t *testing.T) {
	dir, page := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	must(t, (&lab.Saboteur{Rule: "CAS", Kind: "tags", Schedules: 2, Sign: "issued twice"}).Save(dir))
	must(t, (&lab.Saboteur{Rule: "loop", Kind: "conns", Sign: "got `a|b`, <nil>"}).Save(dir))
	must(t, os.WriteFile(detail(page), []byte(saboteurs+"former\n"+end+begin+"mine\n"+end), 0o600))
	must(t, run(t.Context(), "", "", dir, page))
	if text := new(report).text(time.Time{}); strings.Contains(text, "###") {
		t.Errorf("a title without a table: %s", text)
	}
	text, err := os.ReadFile(detail(page))
	must(t, err)
	if !strings.HasSuffix(string(text), end+begin+"mine\n"+end) || strings.Contains(string(text), "former") || !strings.Contains(string(text), "| CAS |") ||
		!strings.Contains(string(text), "| `got 'a\\|b', <nil>` |") {
		t.Errorf("the page is now:\n%s", text)
	}
}

func TestPageWithoutMarks(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	must(t, os.WriteFile(page, []byte("mine"), 0o600))
	if err := run(t.Context(), "", "", t.TempDir(), page); err == nil || !strings.Contains(err.Error(), "no marks") {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(page); string(text) != "mine" {
		t.Errorf("the page is now %q", text)
	}
	if err := run(t.Context(), "simulator,nothing", "", "", page); err == nil || !strings.Contains(err.Error(), `"nothing": there is no such part`) {
		t.Errorf("got %v", err)
	}
}

// A part whose pattern fits no test is not green.
func TestPartWithoutTests(t *testing.T) {
	log := filepath.Join(t.TempDir(), "part.log")
	for text, red := range map[string]bool{"ok  \tpackage\t3.1s\n": false, "ok  \tpackage\t0.1s [no tests to run]\n": true} {
		must(t, os.WriteFile(log, []byte(text), 0o600))
		if err := ranTests(log); (err != nil) != red {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestLetters(t *testing.T) {
	for i, want := range map[int]string{0: "a", 25: "z", 26: "aa", 51: "az", 52: "ba"} {
		if got := letter(i); got != want {
			t.Errorf("%d is %s, want %s", i, got, want)
		}
	}
}

// The whole takes about 80 minutes.
func TestBudgets(t *testing.T) {
	var all time.Duration
	for _, p := range parts {
		all += p.budget
	}
	if all > 96*time.Minute {
		t.Errorf("the parts may take %v", all)
	}
}

// A part that runs again counts with its latest outcome.
func TestLatest(t *testing.T) {
	dir := t.TempDir()
	for _, part := range []lab.Part{{Name: "model", Error: "exit status 1"}, {Name: "clocks"}, {Name: "model", Took: time.Second}} {
		must(t, part.Save(dir))
	}
	for _, s := range []lab.Saboteur{{Rule: "CAS", Kind: "tags"}, {Rule: "CAS", Kind: "leases"}, {Rule: "CAS", Kind: "tags", Sign: "issued twice"}} {
		must(t, s.Save(dir))
	}
	r, err := read(dir)
	must(t, err)
	if len(r.parts) != 2 || r.parts[0].Name != "model" || r.parts[0].Error != "" || r.parts[0].Took != time.Second {
		t.Errorf("parts %+v", r.parts)
	}
	if len(r.saboteurs) != 2 || r.saboteurs[0].Kind != "tags" || r.saboteurs[0].Sign == "" || r.saboteurs[1].Sign != "" {
		t.Errorf("saboteurs %+v", r.saboteurs)
	}
}
