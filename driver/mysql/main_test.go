package mysql_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// mariadb is shared by the tests, each of which has a database of its own.
var mariadb *testserver.MariaDBServer

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	var err error
	if mariadb, err = testserver.StartMariaDB(nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer mariadb.Close()
	return m.Run()
}

var order = segment.Tag{Name: "order", MaxID: 1, Step: 10}
