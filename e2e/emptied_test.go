package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A database is emptied and created again under two servers. One of them has never served the tag,
// so its memory does not show that the counter has restarted: only the identity of the store does.
func TestStoreEmptiedUnderServers(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	if err := emptiedUnderServers(t, leafBinary); err != nil {
		t.Error(err)
	}
}

// emptiedUnderServers reports an ID that both servers issued.
func emptiedUnderServers(t *testing.T, program ...string) error {
	database := mariadb.NewDatabase(t)
	url := mariadb.URL(database)
	create := func() {
		leafCommand(t, "init", "--store", url)
		leafCommand(t, "tag", "create", "order", "--step", "50", "--store", url)
		leafCommand(t, "tag", "create", "user", "--step", "50", "--store", url)
	}
	create()
	start := func() *server {
		args := serveArgs([]string{"--store", url, "--data", filepath.Join(t.TempDir(), "data")})
		return serveBy(t, slices.Concat(program, args)...)
	}
	a, b := start(), start()
	seen := draw(t, a, 40)
	until(t, 30*time.Second, "serving", func() error {
		_, err := b.ids("user", 1)
		return err
	})
	mariadb.Exec(t, "", "DROP DATABASE "+database, "CREATE DATABASE "+database)
	create()
	var again []int64
	until(t, 30*time.Second, "an answer about the other store", func() (err error) {
		if again, err = b.ids("order", 40); err == nil || strings.Contains(b.output(), "another store answers") {
			return nil
		}
		return errors.Join(errors.New("no word of another store"), err)
	})
	for _, id := range again {
		if slices.Contains(seen, id) {
			return fmt.Errorf("%d was issued twice; the end of what the second server logged:\n%s", id, lastLines(b.output(), 3))
		}
	}
	return nil
}
