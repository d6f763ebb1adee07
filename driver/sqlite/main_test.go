package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/driver/sqlite"
	"github.com/leaf-id/leaf/segment"
)

// childFile makes the test binary a second process that uses the SQLite file of
// that name.
const childFile = "LEAF_TEST_SQLITE_CHILD"

// childRegistry is childFile for a registry.
const childRegistry = "LEAF_TEST_SQLITE_REGISTRY_CHILD"

func TestMain(m *testing.M) {
	series.BookIfChild()
	for env, child := range map[string]func(string) error{childFile: child, childRegistry: registryChild} {
		path := os.Getenv(env)
		if path == "" {
			continue
		}
		if err := child(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child advances a counter and prints each range.
func child(path string) error {
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		return err
	}
	s, err := storeOn(db, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	for range childCalls {
		g, err := advanceInTurn(context.Background(), s)
		if err != nil {
			return err
		}
		printRange(g.Range)
	}
	return nil
}

// advanceInTurn tries again while other processes keep the lock from this one for longer
// than a call waits: on a busy machine that may be.
func advanceInTurn(ctx context.Context, s *sqldb.Store) (segment.Grant, error) {
	for deadline := time.Now().Add(time.Minute); ; {
		g, err := s.Advance(ctx, "order", 3)
		if err == nil || !isBusy(err) || time.Now().After(deadline) {
			return g, err
		}
	}
}

func isBusy(err error) bool { return strings.Contains(err.Error(), "another process holds") }

const childCalls = 300

func printRange(r leaf.Range) { fmt.Println(r.Start, r.End) }

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// The ways to open one part, or to make one call.
var (
	suite                       = sqltest.Driver(sqlite.New)
	storeOn, registryOn         = suite.Store, suite.Registry
	initStore, initRegistry     = suite.Init, suite.InitRegistry
	existsStore, existsRegistry = suite.Exists, suite.ExistsRegistry
)
