package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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
	dir := t.TempDir()
	must(t, (&lab.Part{Name: "simulator", Budget: time.Minute, Took: 90 * time.Second, Error: "exit status 1"}).Save(dir))
	must(t, (&lab.Part{Name: "clusters", Budget: time.Minute, Took: 31 * time.Second}).Save(dir))
	for _, c := range []lab.Result{
		{Test: "TestCluster/redis", Scheme: "segment", Seed: 17, IDs: 12_345_678_901, Failed: 7, Silence: 1234 * time.Millisecond,
			Nemeses: map[string]int{"killed": 3}, Holes: map[string]string{"fail-over": "there is one server"}},
		{Test: "TestClusterLimits/pair", Scheme: "segment", Documented: 1002, Limit: "no memory", Nemeses: map[string]int{"lost": 1}},
		{Test: "TestCluster/pair", Scheme: "segment", Nemeses: map[string]int{"fail-over": 1, "killed": 1}},
		{Test: "TestLeases/etcd", Scheme: "snowflake, uid", Seed: 18, Duplicates: 1, Nemeses: map[string]int{"paused": 1}},
		{Test: "TestLeases/mariadb", Scheme: "snowflake, uid", Seed: 19, IDs: 1000, Nemeses: map[string]int{"killed": 2}},
	} {
		must(t, c.Save(dir))
	}
	must(t, (&lab.Schedules{Kind: "tags", Schedules: 100, IDs: 99, Took: time.Second, Error: "1 duplicates: issued twice\nand more"}).Save(dir))
	must(t, (&lab.Saboteur{Rule: "CAS", What: "no compare", Kind: "tags", Schedules: 2, Took: time.Second, Sign: "3 duplicates: issued twice: a and b"}).Save(dir))
	must(t, (&lab.Saboteur{Rule: "W9 wait", What: "no wait", Kind: "losses", Schedules: 3000}).Save(dir))
	must(t, os.WriteFile(filepath.Join(dir, "lab-leases-mariadb.svg"), []byte("<svg/>"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "lab-cluster-redis.svg"), make([]byte, mostBytes+1), 0o600))
	page := filepath.Join(t.TempDir(), "page.md")
	must(t, os.Mkdir(filepath.Join(filepath.Dir(page), pictures), 0o700))
	must(t, os.WriteFile(page, []byte("# Title\n\n"+saboteurs+"former\n"+end+begin+"former\n"+end+"\nrest\n"), 0o600))
	must(t, run(t.Context(), "", dir, page))
	must(t, run(t.Context(), "", dir, page)) // again changes nothing
	text, err := os.ReadFile(page)
	must(t, err)
	for _, want := range []string{
		"# Title\n\n" + saboteurs, end + begin, end + "\nrest\n", "12,345,680,000 IDs in all", "Duplicates: 1, and 1,002 within documented limits",
		"| Cluster/redis | 3 | 12,345,678,901 | 0 | 0 | 1.2 s | 7 | 17 |", "| ClusterLimits/pair | 1 | 0 | 0 | 1,002 (no memory) |",
		"| **all** | 6 |", "| fail-over | 1 | a |\n| killed | 1 | 3 |\n\n* a: there is one server", "LEAF_SEED=0 go test . -v -run '^TestCluster$/^pair$'",
		"| [Leases/mariadb](img/lab-leases-mariadb.svg) | 2 | 1,000 | 0 | 0 | 0.0 s | 0 | 19 |", "](img/lab-leases-mariadb.svg)\n\n### The sim",
		"| killed | **no reason** | 2 |\n| paused | 1 | **no reason** |",
		"| tags | 100 | 6,000 |", "| 1 duplicates: issued twice |", "| CAS | no compare | tags | 2 | 1.0 s | issued twice |",
		"| W9 wait | no wait | losses | 3,000 | 0.0 s | **nothing** |", "| simulator | 1:00 | 1:30 | **red** |", "| **all** | 2:00 | 2:01 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(string(text), "former") || strings.Contains(string(text), "lab-cluster") || strings.Count(string(text), begin) != 1 {
		t.Errorf("the page has too much:\n%s", text)
	}
}

// A run of the saboteurs alone leaves the rest of the page as it was.
func TestPageOfSaboteurs(t *testing.T) {
	dir, page := t.TempDir(), filepath.Join(t.TempDir(), "page.md")
	must(t, (&lab.Saboteur{Rule: "CAS", Kind: "tags", Schedules: 2, Sign: "issued twice"}).Save(dir))
	must(t, os.WriteFile(page, []byte(saboteurs+"former\n"+end+begin+"mine\n"+end), 0o600))
	must(t, run(t.Context(), "", dir, page))
	text, err := os.ReadFile(page)
	must(t, err)
	if !strings.HasSuffix(string(text), end+begin+"mine\n"+end) || strings.Contains(string(text), "former") || !strings.Contains(string(text), "| CAS |") {
		t.Errorf("the page is now:\n%s", text)
	}
}

func TestPageWithoutMarks(t *testing.T) {
	page := filepath.Join(t.TempDir(), "page.md")
	must(t, os.WriteFile(page, []byte("mine"), 0o600))
	if err := run(t.Context(), "", t.TempDir(), page); err == nil || !strings.Contains(err.Error(), "no marks") {
		t.Errorf("got %v", err)
	}
	if text, _ := os.ReadFile(page); string(text) != "mine" {
		t.Errorf("the page is now %q", text)
	}
	if err := run(t.Context(), "simulator,nothing", "", page); err == nil || !strings.Contains(err.Error(), `"nothing": there is no such part`) {
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

// The whole takes about 40 minutes.
func TestBudgets(t *testing.T) {
	var all time.Duration
	for _, p := range parts {
		all += p.budget
	}
	if all > 40*time.Minute {
		t.Errorf("the parts may take %v", all)
	}
}
