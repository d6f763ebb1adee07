package invoice_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf/examples/invoice"
)

// TestIssue issues invoices from many goroutines, of which every third fails: no number is missing.
func TestIssue(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "books.db")+"?_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	books, err := invoice.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var numbers []string
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			cents := int64(i % 3) // 0 is refused by the table
			number, err := books.Issue(t.Context(), fmt.Sprint("customer ", i), cents)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				numbers = append(numbers, number[:10])
			} else if cents > 0 {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	slices.Sort(numbers)
	for i, number := range numbers {
		if want := fmt.Sprintf("INV-%06d", i+1); number != want {
			t.Fatalf("invoice %d has the number %s, want %s", i+1, number, want)
		}
	}
	if len(numbers) != 20 {
		t.Errorf("%d invoices, want 20", len(numbers))
	}
}
