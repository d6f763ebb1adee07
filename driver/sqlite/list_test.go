package sqlite_test

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
)

// Listings neither wait for writers nor make them wait.
func TestSQLiteListsBesideTheWriter(t *testing.T) {
	path := newSQLite(t, order)
	s := openSQLite(t, path)
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	hold, err := sqliteDB(t, path).Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	sqltest.Exec(t, hold, "BEGIN IMMEDIATE") // the writer waits
	go s.Advance(t.Context(), "order", 1)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for tag, err := range s.Tags(ctx) {
		if err != nil || tag.Name != "order" {
			t.Errorf("%v, %v", tag, err)
		}
	}
	sqltest.Exec(t, hold, "COMMIT")
}
