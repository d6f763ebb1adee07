package e2e

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// Pods on one database crash again and again under load, each time with an empty data directory.
// The first ones are there before the tables are. Nothing is issued twice.
func TestCrashLoopsWithoutVolumes(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
	var orders drivertest.IDs
	var times drivertest.Ranges
	start := func(pod int) *server {
		return serveWith(t, fmt.Sprintf("LEAF_ID_SPACE=%s %d", idSpace(t), pod), // as a network namespace does
			"--store", url, "--data", filepath.Join(t.TempDir(), "data"))
	}
	var pods sync.WaitGroup
	for pod := range 3 {
		s := start(pod)
		shard := orders.Shard()
		pods.Go(func() {
			for crash := range 3 {
				if crash > 0 {
					s = start(pod)
				}
				s.awaitSnowflake(minWait)
				shard.Add(s.draw("order", 200)...)
				for range 5 {
					ranges, err := s.take("x", 10_000)
					if err != nil {
						t.Error(err)
					}
					times.Add(ranges...)
				}
				s.kill()
			}
		})
	}
	leafCommand(t, "init", "--store", url)
	leafCommand(t, "init", "--workers", url)
	leafCommand(t, "tag", "create", "order", "--step", "10", "--store", url)
	pods.Wait()
	if err := errors.Join(orders.Check(), times.Check()); err != nil {
		t.Error(err)
	}
	if orders.Count() < 1800 || times.Count() < 450_000 {
		t.Errorf("%d IDs of a tag and %d time-based ones were compared", orders.Count(), times.Count())
	}
}

// With the embedded store the same gives IDs twice. With its volume it does not, also while two
// containers of a host have it.
func TestEmbeddedStoreNeedsItsVolume(t *testing.T) {
	t.Parallel()
	crashed := func(data string) []int64 {
		s := serve(t, "--data", data)
		defer s.kill()
		return s.draw(sampleTag, 100)
	}
	if common(crashed(filepath.Join(t.TempDir(), "a")), crashed(filepath.Join(t.TempDir(), "b"))) == 0 {
		t.Error("without a volume no ID was issued twice: docs/containers.md says otherwise")
	}
	volume := filepath.Join(t.TempDir(), "data")
	beside := serve(t, "--data", volume)
	var seen drivertest.IDs
	seen.Shard().Add(beside.draw(sampleTag, 100)...)
	for range 2 {
		seen.Shard().Add(crashed(volume)...)
	}
	seen.Shard().Add(beside.draw(sampleTag, 3000)...)
	if err := seen.Check(); err != nil {
		t.Error(err)
	}
}
