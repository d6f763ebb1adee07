package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqlite"
)

var series = sqltest.Series{Driver: "sqlite", Create: sqlite.CreateSeries, Next: sqlite.NextTx}

func TestSeries(t *testing.T) {
	series.TestContract(t, "file:"+filepath.Join(t.TempDir(), "books.db")+"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)")
}

func TestSeriesKilled(t *testing.T) {
	series.TestKilled(t, "file:"+filepath.Join(t.TempDir(), "books.db")+"?_pragma=busy_timeout(30000)&_pragma=journal_mode(WAL)")
}
