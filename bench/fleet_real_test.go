package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// real is small enough for servers on this machine.
var real = fleet{nodes: 3, tags: 50, spread: 3, demand: 15e3, sample: 10_000, step: 100, run: 40 * time.Second}

// serve has real servers on a MariaDB do what simulate does, and returns how many updates a
// second the database has counted.
func (f fleet) serve(t *testing.T) (calls float64) {
	db := testserver.MariaDB(t, nil)
	name := db.NewDatabase(t)
	f.create(t, db.URL(name))
	binary, err := bench.Build(t.Context(), "..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var urls []string
	t.Setenv("LEAF_SNOWFLAKE_ENABLE", "false") // no worker IDs, which would be written to the database too
	for range f.nodes {
		s, err := bench.Start(binary, "--listen", "127.0.0.1:0", "--resp", "off", "--data", filepath.Join(t.TempDir(), "data"), "--store", db.URL(name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Stop)
		urls = append(urls, s.URL)
	}
	before := updates(t, db.DSN(name))
	began := time.Now()
	f.drive(t, urls)
	return (updates(t, db.DSN(name)) - before) / time.Since(began).Seconds()
}

func fleetTag(i int) string { return fmt.Sprint("tag-", i) }

func (f fleet) create(t *testing.T, url string) {
	t.Helper()
	b, err := drivers.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var tags []segment.Tag
	for i := range f.tags {
		tags = append(tags, segment.Tag{Name: fleetTag(i), MaxID: 1, Step: f.step})
	}
	if err := b.Tags.Init(t.Context(), tags...); err != nil {
		t.Fatal(err)
	}
}

// updates is how many UPDATE statements the database has run: an allocation each.
func updates(t *testing.T, dsn string) float64 {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var n float64
	if err := db.QueryRowContext(t.Context(), "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'COM_UPDATE'").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// drive takes IDs of every tag at every server, once a second, for as long as the run is.
func (f fleet) drive(t *testing.T, urls []string) {
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: f.tags}}
	began := time.Now()
	for i, s := range f.buffers() {
		for _, url := range urls {
			wg.Go(func() {
				due := 0.0
				for second := range int(f.run.Seconds()) {
					time.Sleep(time.Until(began.Add(time.Duration(second) * time.Second)))
					due += s.rate
					if n := math.Floor(due); n >= 1 {
						due -= n
						if err := take(t.Context(), client, url, fleetTag(i), int(n)); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
	wg.Wait()
}

func take(ctx context.Context, client *http.Client, url, tag string, n int) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/api/segment/get/%s?n=%d", url, tag, n), nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if got := strings.Count(strings.TrimSpace(string(body)), "\n") + 1; err == nil && (res.StatusCode != http.StatusOK || got != n) {
		err = fmt.Errorf("%s: %d IDs of %d: %s", res.Status, got, n, body)
	}
	return err
}
