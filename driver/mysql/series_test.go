package mysql_test

import (
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/mysql"
)

var series = sqltest.Series{Driver: "mysql", Create: mysql.CreateSeries, Next: mysql.NextTx}

func TestSeries(t *testing.T) { series.TestContract(t, mariadb.DSN(mariadb.NewDatabase(t))) }

func TestSeriesKilled(t *testing.T) { series.TestKilled(t, mariadb.DSN(mariadb.NewDatabase(t))) }
