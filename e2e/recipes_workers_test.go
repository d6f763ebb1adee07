package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
)

// aheadOfTheClock is how far IDs of a node with the layout leaf may run ahead.
const aheadOfTheClock = 2 * time.Second

// Two machines change to another registry, each with its data directory, one after a crash. With
// both stopped until the clock has passed the last ID nothing is issued twice. As a rolling change
// it is.
func TestRegistryChanged(t *testing.T) {
	t.Parallel()
	for name, rolling := range map[string]bool{"stopped": false, "rolling": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all drivertest.Ranges
			before, after := newRegistry(t), newRegistry(t)
			configs := []nodeConfig{{Data: t.TempDir()}, {Data: t.TempDir()}}
			for i := range configs {
				configs[i].Workers, configs[i].WorkerBits, configs[i].Horizon = before, 2, 30*time.Minute
			}
			a, b := startNode(t, &all, configs[0]), startNode(t, &all, configs[1])
			a.take(1000)
			b.take(5_000_000) // ahead of the clock
			a.kill()
			a = startNode(t, &all, configs[0]) // half-way: back to the old registry
			a.take(1000)
			a.kill()
			if !rolling {
				b.stop()
				time.Sleep(aheadOfTheClock)
			}
			configs[0].Workers, configs[1].Workers = after, after
			a = startNode(t, &all, configs[0])
			c := startNode(t, &all, configs[1])
			nodes := []*node{a, c}
			if rolling { // two more: all four worker IDs are in use, that of b too
				for range 2 {
					nodes = append(nodes, startNode(t, &all, nodeConfig{Workers: after, WorkerBits: 2, Horizon: 30 * time.Minute, Data: t.TempDir()}))
				}
				nodes = append(nodes, b)
			}
			take := func() error {
				for _, n := range nodes {
					n.take(100_000)
				}
				return all.Check()
			}
			if rolling {
				until(t, minWait, "issued twice, else the test shows nothing", func() error {
					if take() != nil {
						return nil
					}
					return errors.New("no ID came twice")
				})
				return
			}
			for range 10 {
				if err := take(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A registry is restored to before a claim, and a server with that claim in its data directory
// starts while the registry is still away. With its file removed it waits for the registry. With
// the file it continues, next to another server that gets its worker ID.
func TestRestoredRegistryAndStateFiles(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]bool{"removed": true, "kept": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all drivertest.Ranges
			live, away := filepath.Join(t.TempDir(), "workers.db"), filepath.Join(t.TempDir(), "restored.db")
			initWorkers(t, "sqlite:"+live)
			initWorkers(t, "sqlite:"+away) // a backup from before the first claim
			c := nodeConfig{Workers: "sqlite:" + live, Data: t.TempDir(), Horizon: 30 * time.Minute}
			a := startNode(t, &all, c)
			a.take(1000)
			a.kill()
			files, err := filepath.Glob(live + "*")
			if err != nil {
				t.Fatal(err)
			}
			states, err := filepath.Glob(filepath.Join(c.Data, "worker-*"))
			if err != nil || len(states) == 0 {
				t.Fatal(states, err)
			}
			if remove {
				files = append(files, states...)
			}
			for _, f := range files {
				if err := os.Remove(f); err != nil {
					t.Fatal(err)
				}
			}
			a = startNode(t, &all, c)
			if !remove {
				a.take(1000)
			}
			replace(t, away, live)
			other := c
			other.Data = t.TempDir()
			if remove { // they compete for the one worker ID
				until(t, minWait, "issuing", func() error { _, err := a.try(100_000); return err })
			}
			b := startNode(t, &all, other)
			if remove {
				a.stop()
				b.take(100_000)
				if err := all.Check(); err != nil {
					t.Error(err)
				}
				return
			}
			until(t, minWait, "issued twice, else the test shows nothing", func() error {
				a.take(1_000_000)
				b.take(1_000_000)
				if all.Check() != nil {
					return nil
				}
				return errors.New("no ID came twice")
			})
		})
	}
}
