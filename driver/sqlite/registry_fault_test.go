package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/leaf-id/leaf/worker"
)

// countUp raises the term of worker 7 by one, and returns 0 if that failed or may
// have failed.
func countUp(ctx context.Context, r worker.Registry) (int64, error) {
	old, err := r.Load(ctx, 7)
	if err != nil {
		return 0, err
	}
	next := worker.Record{Worker: 7, Instance: worker.NewInstance(), Term: old.Term + 1}
	if err := r.Swap(ctx, old, next); err != nil {
		return 0, err
	}
	return next.Term, nil
}

// terms collects who won which term.
type terms struct {
	mu   sync.Mutex
	wins map[int64]int
	last int64
}

func (w *terms) add(t *testing.T, term int64) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wins == nil {
		w.wins = make(map[int64]int)
	}
	w.wins[term]++
	w.last = max(w.last, term)
	if w.wins[term] > 1 {
		t.Errorf("term %d was won twice", term)
	}
}

// Several processes count up one cell together.
func TestSQLiteRegistryProcesses(t *testing.T) {
	const processes = 3
	path := newSQLiteRegistry(t)
	var won terms
	var wg sync.WaitGroup
	for range processes {
		wg.Go(func() {
			binary, err := os.Executable()
			if err != nil {
				t.Error(err)
				return
			}
			cmd := exec.Command(binary)
			cmd.Env = append(os.Environ(), childRegistry+"="+path)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("child: %v", err)
			}
			for line := range strings.Lines(string(out)) {
				var term int64
				if _, err := fmt.Sscan(line, &term); err == nil {
					won.add(t, term)
				}
			}
		})
	}
	wg.Wait()
	if got, err := openSQLiteRegistry(t, path).Load(t.Context(), 7); err != nil || got.Term != processes*childTerms || len(won.wins) != processes*childTerms {
		t.Errorf("%d terms were won, the cell stands at %d, %v, want %d", len(won.wins), got.Term, err, processes*childTerms)
	}
}

const childTerms = 100

// registryChild wins terms and prints them.
func registryChild(path string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	defer db.Close()
	r, err := registryOn(db, nil)
	if err != nil {
		return err
	}
	defer r.Close()
	for n := 0; n < childTerms; {
		term, err := countUp(context.Background(), r)
		switch {
		case err == nil:
			fmt.Println(term)
			n++
		case !errors.Is(err, worker.ErrConflict) && !isBusy(err):
			return err
		}
	}
	return nil
}

// What is written to a file that was replaced counts for nothing.
func TestSQLiteRegistryReplacedFile(t *testing.T) {
	path := newSQLiteRegistry(t)
	r := openSQLiteRegistry(t, path)
	if _, err := countUp(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	backup := newSQLiteRegistry(t)
	if err := os.Rename(backup, path); err != nil {
		t.Fatal(err)
	}
	err := r.Swap(t.Context(), worker.Record{Worker: 8}, worker.Record{Worker: 8, Term: 1})
	if err == nil || !strings.Contains(err.Error(), "replaced") {
		t.Errorf("error %v, want one that says replaced", err)
	}
}
