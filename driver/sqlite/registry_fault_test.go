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

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/worker"
)

// Several processes count up one cell together.
func TestSQLiteRegistryProcesses(t *testing.T) {
	const processes = 3
	path := newSQLiteRegistry(t)
	var won sqltest.Terms
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
					won.Add(t, term)
				}
			}
		})
	}
	wg.Wait()
	if got, err := openSQLiteRegistry(t, path).Load(t.Context(), 7); err != nil || got.Term != processes*childTerms || won.Count() != processes*childTerms {
		t.Errorf("%d terms were won, the cell stands at %d, %v, want %d", won.Count(), got.Term, err, processes*childTerms)
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
		term, err := sqltest.CountUp(context.Background(), r)
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
	inBubble(func(t *testing.T) {
		path := newSQLiteRegistry(t)
		r := openSQLiteRegistry(t, path)
		if _, err := sqltest.CountUp(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		rename(t, path, path+".old")
		rename(t, newSQLiteRegistry(t), path)
		err := r.Swap(t.Context(), worker.Record{Worker: 8}, worker.Record{Worker: 8, Term: 1})
		if err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("error %v, want one that says replaced", err)
		}
	})(t)
}
