package e2e

import (
	"errors"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
)

var foreignStore = regexp.MustCompile(`another store answers: its identity is \W*(\w+)`)

// An operator replaces a store and tells a server that remembers the former one to accept the new
// identity: with counters above all IDs in use, and half-way, before raising them.
func TestReplacedStoreIsAccepted(t *testing.T) {
	t.Parallel()
	for name, raised := range map[string]bool{"raised": true, "half-way": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			database := mariadb.NewDatabase(t)
			url, data := mariadb.URL(database), filepath.Join(t.TempDir(), "data")
			leafCommand(t, "init", "--store", url)
			leafCommand(t, "tag", "create", "order", "--step", "10", "--store", url)
			var seen drivertest.IDs
			start := func(url string) *server { return backedUp{url: url}.serve(t, data) }
			s := start(url)
			seen.Shard().Add(s.draw("order", 500)...)
			s.kill()
			mariadb.Exec(t, "", "DROP DATABASE "+database, "CREATE DATABASE "+database)
			leafCommand(t, "init", "--store", url)
			maxID := "1"
			if raised {
				maxID = "1000000000000"
			}
			leafCommand(t, "tag", "create", "order", "--step", "10", "--max-id", maxID, "--store", url)
			s = start(url)
			var identity string
			until(t, 20*time.Second, "refusing", func() error {
				ids, err := s.ids("order", 50)
				seen.Shard().Add(ids...)
				m := foreignStore.FindStringSubmatch(s.output())
				if m == nil {
					return errors.Join(errors.New("no word of another store"), err)
				}
				identity = m[1]
				return nil
			})
			s.kill()
			accepting := url + "?store_id=" + identity
			s = start(accepting)
			seen.Shard().Add(s.draw("order", 500)...)
			s.kill()
			s = start(url)
			seen.Shard().Add(s.draw("order", 500)...)
			if err := seen.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}
