package e2e

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A server holds a range that a fail-over lost, and another one was granted the same
// range since. When the first one stops it must not give back what is the other's by
// then. (That the two themselves issue the same IDs is what the lost write costs: the
// second one knew nothing of it.)
func TestPostgresGiveBackAfterFailOver(t *testing.T) {
	t.Parallel()
	pair := testserver.PostgresPair(t)
	database := pair.Primary.NewDatabase(t)
	url := pair.URL(database)
	leafCommand(t, "init", "--store", url)
	leafCommand(t, "tag", "create", "order", "--step", "50", "--store", url)
	pair.CatchUp(t)
	pair.Break(t)
	start := func() *server { return serve(t, "--store", url, "--data", filepath.Join(t.TempDir(), "data")) }
	a := start()
	lost := draw(t, a, 3) // of [1, 51), with which the counter stands at 51
	pair.FailOver(t)
	b := start()
	theirs := draw(t, b, 3) // and so it does again
	if theirs[0] != lost[0] {
		t.Fatalf("%d and %d: nothing was lost, and nothing is tested", lost[0], theirs[0])
	}
	until(t, 30*time.Second, "at the new primary", func() error {
		if _, err := a.ids("nothing", 1); !strings.Contains(err.Error(), "404") {
			return errors.Join(errors.New("no answer from the store"), err)
		}
		return nil
	})
	a.stop()
	c := start()
	seen := make(map[int64]bool)
	for _, id := range append(append(theirs, draw(t, c, 40)...), draw(t, b, 40)...) {
		if seen[id] {
			t.Errorf("%d was issued twice", id)
		}
		seen[id] = true
	}
	t.Logf("%d IDs compared, %d twice; the end of what the first server logged:\n%s", 83, 83-len(seen), lastLines(a.output(), 3))
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
