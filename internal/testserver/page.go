package testserver

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the generated pages of docs/ again")

// Page compares a page of docs/, or another file, with the text that the code generates for it, and
// writes it with -update.
func Page(t testing.TB, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; 'make reference' writes it", err)
	}
	got, need := strings.Split(string(text), "\n"), strings.Split(want, "\n")
	for i := range max(len(got), len(need)) {
		if i >= len(got) || i >= len(need) || got[i] != need[i] {
			t.Fatalf("%s differs from the code at line %d; 'make reference' writes it again.\npage: %s\ncode: %s",
				file, i+1, strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), strings.Join(need[min(i, len(need)):min(i+1, len(need))], ""))
		}
	}
}
