package mysql_test

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// The tests share mariadb. Each has a database of its own.
var mariadb *testserver.MariaDBServer

func TestMain(m *testing.M) {
	series.BookIfChild()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if mariadb, err = testserver.StartMariaDB(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer mariadb.Close()
	if dsn, err = exampleDatabase(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// dsn is that of a database for the example.
var dsn string

func exampleDatabase() (string, error) {
	db, err := sql.Open("mysql", mariadb.DSN(""))
	if err != nil {
		return "", err
	}
	defer db.Close()
	plain, _, _ := strings.Cut(mariadb.DSN("example"), "?")
	_, err = db.Exec("CREATE DATABASE example")
	return plain, err
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 10}

// The ways to open one part, or to make one call.
var (
	suite                   = sqltest.Driver(mysql.New)
	storeOn, registryOn     = suite.Store, suite.Registry
	initStore, initRegistry = suite.Init, suite.InitRegistry
)
