package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
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

// A write to a replaced file does not count.
func TestSQLiteRegistryReplacedFile(t *testing.T) {
	inBubble(func(t *testing.T) {
		path := newSQLiteRegistry(t)
		r := openSQLiteRegistry(t, path)
		if _, err := sqltest.CountUp(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		rename(t, path, path+".old")
		rename(t, newSQLiteRegistry(t), path)
		_, err := r.Swap(t.Context(), worker.Record{Worker: 8}, worker.Record{Worker: 8, Term: 1})
		if err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("error %v, want one that says replaced", err)
		}
	})(t)
}

// While writes fail, as on a full disk, successful reads are no recovery: the log reports it once,
// after a successful write.
func TestReadingIsNoRecovery(t *testing.T) {
	path := newSQLiteRegistry(t)
	db := sqliteDB(t, path)
	var log strings.Builder
	r := suite.OpenRegistry(t, sqliteDB(t, path), &sqldb.Options{File: path, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	record := worker.Record{Worker: 1, Instance: worker.NewInstance(), Term: 1, Horizon: time.UnixMilli(1)}
	for _, full := range []bool{true, false} {
		statement := "DROP TRIGGER full"
		if full {
			statement = "CREATE TRIGGER full BEFORE INSERT ON leaf_worker BEGIN SELECT RAISE(FAIL, 'full'); END"
		}
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := r.Swap(t.Context(), worker.Record{Worker: 1}, record); full && err == nil {
				t.Fatal("it is written all the same")
			}
			if _, err := r.Load(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Close()
	if failed, works := strings.Count(log.String(), "transaction failed"), strings.Count(log.String(), "works again"); failed != 1 || works != 1 {
		t.Errorf("%d failures, %d recoveries:\n%s", failed, works, log.String())
	}
}
