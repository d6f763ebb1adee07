package postgres_test

import (
	"os"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// The tests share postgresServer. Each has a database of its own.
var postgresServer *testserver.PostgresServer

func TestMain(m *testing.M) {
	series.BookIfChild()
	os.Exit(testserver.Main(m, &postgresServer, func() (*testserver.PostgresServer, error) {
		// No test of the shared server cuts the power, and a database a test is much to sync.
		return testserver.StartPostgres(&testserver.PostgresOptions{Settings: []string{"fsync=off"}})
	}))
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 10}

// The ways to open one part, or to make one call.
var (
	suite                   = sqltest.Driver(postgres.New)
	storeOn                 = suite.Store
	existsStore             = suite.Exists
	initStore, initRegistry = suite.Init, suite.InitRegistry
)
