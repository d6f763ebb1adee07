package postgres_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// postgresServer is shared by the tests, each of which has a database of its own.
var postgresServer *testserver.PostgresServer

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	// No test of the shared server cuts the power, and a database a test is much to sync.
	if postgresServer, err = testserver.StartPostgres(&testserver.PostgresOptions{Settings: []string{"fsync=off"}}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer postgresServer.Close()
	return m.Run()
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 10}

// The ways to open one part, or to make one call.
var (
	suite                   = sqltest.Driver[postgres.Options](postgres.New)
	storeOn                 = suite.Store
	existsStore             = suite.Exists
	initStore, initRegistry = suite.Init, suite.InitRegistry
)
