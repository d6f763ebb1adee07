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

// A server holds a range that a fail-over lost, and the store has granted the same range to another
// server since. When the first one stops it must not give back the other's range. (Both issue the
// same IDs: that is the price of the lost write, which the second server could not know.)
func TestPostgresGiveBackAfterFailOver(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	if err := giveBackAfterFailOver(t, leafBinary); err != nil {
		t.Error(err)
	}
}

// giveBackAfterFailOver reports an ID that servers issued twice after the first one had stopped.
func giveBackAfterFailOver(t *testing.T, program ...string) error {
	pair := testserver.PostgresPair(t)
	database := pair.Primary.NewDatabase(t)
	url := pair.URL(database)
	leafCommand(t, "init", "--store", url)
	leafCommand(t, "tag", "create", "order", "--step", "50", "--store", url)
	pair.CatchUp(t)
	pair.Break(t)
	start := func() *server {
		args := serveArgs([]string{"--store", url, "--data", filepath.Join(t.TempDir(), "data")})
		return serveBy(t, slices.Concat(program, args)...)
	}
	a := start()
	lost := draw(t, a, 3) // of [1, 51), which moved the counter to 51
	pair.FailOver(t)
	b := start()
	theirs := draw(t, b, 3) // and so it does again
	if theirs[0] != lost[0] {
		t.Fatalf("%d and %d: nothing was lost, and nothing is tested", lost[0], theirs[0])
	}
	until(t, 30*time.Second, "at the new primary", func() error {
		if _, err := a.ids("nothing", 1); !strings.Contains(err.Error(), "unknown tag") {
			return errors.Join(errors.New("no answer from the store"), err)
		}
		return nil
	})
	a.stop()
	c := start()
	seen := make(map[int64]bool)
	for _, id := range slices.Concat(theirs, draw(t, c, 40), draw(t, b, 40)) {
		if seen[id] {
			return fmt.Errorf("%d was issued twice; the end of what the first server logged:\n%s", id, lastLines(a.output(), 3))
		}
		seen[id] = true
	}
	return nil
}

func draw(t *testing.T, s *server, n int) []int64 {
	t.Helper()
	var ids []int64
	until(t, 30*time.Second, "serving", func() (err error) {
		ids, err = s.ids("order", n)
		return err
	})
	return ids
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
