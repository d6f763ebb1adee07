package postgres_test

import (
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/postgres"
)

var series = sqltest.Series{Driver: "pgx", Create: postgres.CreateSeries, Next: postgres.NextTx}

func TestSeries(t *testing.T) {
	series.TestContract(t, postgresServer.URL(postgresServer.NewDatabase(t)))
}

func TestSeriesKilled(t *testing.T) {
	series.TestKilled(t, postgresServer.URL(postgresServer.NewDatabase(t)))
}
