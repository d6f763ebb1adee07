package lab_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/e2e/lab"
)

// A run that ended before its checks leaves a result, with an ID that came twice if there is one.
func TestUnfinished(t *testing.T) {
	dir := t.TempDir()
	twice := history(call("a", 0, 1, 0, 10), call("b", 0, 1, 9, 20))
	for _, r := range []lab.Result{{Test: "TestA"}, {Test: "TestB", Took: time.Second}} {
		if err := errors.Join(r.SaveUnfinished(dir, new(lab.History)), r.SaveUnfinished(dir, twice), r.SaveUnfinished("", twice)); err != nil {
			t.Error(err)
		}
	}
	all, err := lab.Results(dir)
	if err != nil || len(all) != 2 || all[0].Error != "it ended before its checks" || !strings.HasPrefix(all[1].Error, "1 duplicates: issued twice") || all[1].Answered != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// Results saved at the same time are all kept unchanged.
func TestResults(t *testing.T) {
	dir := t.TempDir()
	if all, err := lab.Results(dir); err != nil || all != nil {
		t.Errorf("an empty folder has %v, %v", all, err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			r := lab.Result{Test: string(rune('t' - i)), Seed: 1<<64 - 1, Nemeses: map[string]int{"killed": 2, "cut": i}, Silence: time.Minute,
				Holes: map[string]string{"frozen": strings.Repeat("long ", 1000)}}
			if err := r.Save(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := lab.Results(dir)
	if err != nil || len(all) != 20 {
		t.Fatalf("%d results, %v", len(all), err)
	}
	if r := all[0]; r.Test != "a" || r.Seed != 1<<64-1 || r.Strikes() != 21 || r.Silence != time.Minute {
		t.Errorf("the first result is %+v", r)
	}
	if names := lab.Struck(all); !slices.Equal(names, []string{"cut", "frozen", "killed"}) {
		t.Errorf("nemeses %q", names)
	}
	if err := os.WriteFile(filepath.Join(dir, "results.jsonl"), []byte("{}\n{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := lab.Results(dir); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("a line that was cut off: %v", err)
	}
}
