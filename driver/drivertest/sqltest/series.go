package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leaf-id/leaf"
)

// A Series is a driver's numbers inside the caller's transaction.
type Series struct {
	Driver string // of database/sql
	Create func(ctx context.Context, db *sql.DB, name string, first int64) error
	Next   func(ctx context.Context, tx *sql.Tx, series ...string) ([]int64, error)
}

// seriesChild makes the test binary a program that books documents; it has the data source.
const seriesChild = "LEAF_TEST_SERIES_CHILD"

// BookIfChild books documents and exits if the process is a child of [Series.TestKilled]. TestMain
// begins with it.
func (s Series) BookIfChild() {
	dsn := os.Getenv(seriesChild)
	if dsn == "" {
		return
	}
	if err := s.book(dsn); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	bookers   = 4
	killOneIn = 400 // at each step of a document
)

// book books documents from several goroutines until it kills itself, or the table is full.
func (s Series) book(dsn string) error {
	var full int
	if _, err := fmt.Sscan(os.Getenv("LEAF_TEST_SERIES_DOCUMENTS"), &full); err != nil {
		return err
	}
	db, err := sql.Open(s.Driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var booked atomic.Int64
	count := func() (n int64, err error) {
		err = db.QueryRow(`SELECT count(*) FROM document`).Scan(&n)
		return n, err
	}
	n, err := count()
	if err != nil {
		return err
	}
	booked.Store(n)
	errs := make([]error, bookers)
	var wg sync.WaitGroup
	for i := range bookers {
		wg.Go(func() {
			for errs[i] == nil && booked.Load() < int64(full) {
				var n int
				n, errs[i] = s.bookOne(db)
				booked.Add(int64(n))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// killSelf ends the process at once: kill -9 on Unix.
func killSelf() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
}

var errRollBack = errors.New("roll back")

// bookOne books a document of one series or of two. At each step it may end the process, or roll back.
func (s Series) bookOne(db *sql.DB) (booked int, err error) {
	ctx := context.Background()
	names := [][]string{{"invoice"}, {"credit"}, {"invoice", "credit"}, {"credit", "invoice"}}[rand.IntN(4)]
	step := func() error {
		if rand.IntN(killOneIn) == 0 {
			killSelf()
		}
		if rand.IntN(20) == 0 {
			return errRollBack
		}
		return nil
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer func() {
		if err == nil {
			return
		}
		if failed := tx.Rollback(); errors.Is(err, errRollBack) && failed == nil {
			err = nil
		}
	}()
	if err := step(); err != nil {
		return 0, err
	}
	numbers, err := s.Next(ctx, tx, names...)
	if err != nil {
		return 0, err
	}
	if err := step(); err != nil {
		return 0, err
	}
	for i, n := range numbers {
		if _, err := tx.ExecContext(ctx, fmt.Sprintf(`INSERT INTO document (series, number) VALUES ('%s', %d)`, names[i], n)); err != nil {
			return 0, err
		}
		if err := step(); err != nil {
			return 0, err
		}
	}
	if err := tx.Commit(); err != nil {
		return 0, fmt.Errorf("commit: %w", err)
	}
	if rand.IntN(killOneIn) == 0 {
		killSelf()
	}
	return len(names), nil
}

// TestKilled has programs book documents, which roll back and are killed at every step, and looks for
// gaps and duplicates. LEAF_TEST_SERIES_DOCUMENTS is the number of documents.
func (s Series) TestKilled(t *testing.T, dsn string) {
	documents := os.Getenv("LEAF_TEST_SERIES_DOCUMENTS")
	if documents == "" {
		documents = "1500"
	}
	db, err := sql.Open(s.Driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), `CREATE TABLE document (series VARCHAR(20) NOT NULL, number BIGINT NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"invoice", "credit"} {
		if err := s.Create(t.Context(), db, name, 1); err != nil {
			t.Fatal(err)
		}
	}
	kills := 0
	for {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
		child.Env = append(os.Environ(), seriesChild+"="+dsn, "LEAF_TEST_SERIES_DOCUMENTS="+documents)
		out, err := child.CombinedOutput()
		if err == nil {
			break
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("the child: %v\n%s", err, out)
		}
		kills++
	}
	total := int64(0)
	for _, name := range []string{"invoice", "credit"} {
		var n, distinct, lowest, highest int64
		err := db.QueryRow(`SELECT count(*), count(DISTINCT number), min(number), max(number) FROM document WHERE series = '`+name+`'`).
			Scan(&n, &distinct, &lowest, &highest)
		if err != nil || n == 0 || distinct != n || lowest != 1 || highest != n {
			t.Errorf("%s: %d documents with %d numbers in %d … %d, %v", name, n, distinct, lowest, highest, err)
		}
		total += n
	}
	t.Logf("%d documents, %d kills", total, kills)
	if kills == 0 {
		t.Error("no process was killed")
	}
}

// TestContract checks the results and the errors of one transaction.
func (s Series) TestContract(t *testing.T, dsn string) {
	db, err := sql.Open(s.Driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var wg sync.WaitGroup
	for range 4 { // also at the same time
		wg.Go(func() {
			for name, first := range map[string]int64{"a": 1, "A": 100, "a ": 0, "größe": 7} {
				if err := s.Create(t.Context(), db, name, first); err != nil {
					t.Errorf("create %q: %v", name, err)
				}
			}
		})
	}
	wg.Wait()
	for name, first := range map[string]int64{"": 1, strings.Repeat("x", 129): 1, "b": -1} {
		if err := s.Create(t.Context(), db, name, first); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("create %q from %d: %v, want ErrInvalid", name, first, err)
		}
	}
	for _, tt := range []struct {
		series []string
		want   string
		err    error
		commit bool
	}{
		{[]string{"größe", "a", "A"}, "[7 1 100]", nil, false},
		{[]string{"a", "größe", "A"}, "[1 7 100]", nil, true},
		{[]string{"a", "a"}, "[]", leaf.ErrInvalid, false},
		{[]string{"a", "nope"}, "[]", leaf.ErrUnknownTag, false},
		{[]string{"a "}, "[0]", nil, true},
		{[]string{"a"}, "[2]", nil, true},
		{nil, "[]", nil, true},
	} {
		tx, err := db.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.Next(t.Context(), tx, tt.series...); fmt.Sprint(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%q: %v, %v, want %s, %v", tt.series, got, err, tt.want, tt.err)
		}
		end := tx.Rollback
		if tt.commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Error(err)
		}
	}
}
