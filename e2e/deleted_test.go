package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// A tag is deleted and created again under a server that issues its IDs, by one that does not.
func TestTagDeletedUnderServers(t *testing.T) {
	t.Parallel()
	if err := tagDeletedUnderServers(t, leafBinary); err != nil {
		t.Error(err)
	}
}

// tagDeletedUnderServers reports an ID that both servers issued.
func tagDeletedUnderServers(t *testing.T, program ...string) error {
	database := mariadb.NewDatabase(t)
	url := mariadb.URL(database)
	leafCommand(t, "init", "--store", url)
	leafCommand(t, "tag", "create", "order", "--step", "50", "--store", url)
	start := func() *server {
		args := serveArgs([]string{"--store", url, "--data", filepath.Join(t.TempDir(), "data")})
		return serveBy(t, slices.Concat(program, args)...)
	}
	a, b := start(), start()
	seen := draw(t, a, 40)
	leafCommand(t, "tag", "delete", "order", "--yes", "--server", b.url)
	leafCommand(t, "tag", "create", "order", "--step", "50", "--server", b.url)
	for _, id := range draw(t, b, 40) {
		if slices.Contains(seen, id) {
			return fmt.Errorf("%d was issued twice", id)
		}
	}
	return nil
}
