package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	sdk "github.com/leaf-id/leaf/client"
	"github.com/leaf-id/leaf/driver/drivertest"
)

// programVariable holds the program of a test binary that runs as one.
const programVariable = "LEAF_E2E_PROGRAM"

// A program takes IDs with a Go client, in a process of its own, and prints them as ranges.
type program struct {
	URL    string
	Tag    string
	IDs    int64
	Lives  int   // clients, one after the other: each gives back its rest
	Stock  int64 // of each at most
	AtOnce int   // IDs of a batch
}

func programMain(config string) int {
	var p program
	err := json.Unmarshal([]byte(config), &p)
	var ranges []leaf.Range
	for i := 0; i < p.Lives && err == nil; i++ {
		var taken []leaf.Range
		taken, err = p.live()
		ranges = append(ranges, taken...)
	}
	if err == nil {
		ranges, err = joined(ranges)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(ranges)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "program:", err)
		return 1
	}
	return 0
}

// live takes the IDs of one client, in all ways at the same time.
func (p *program) live() ([]leaf.Range, error) {
	ids, err := sdk.New(p.URL, &sdk.Options{MaxStock: p.Stock, Wait: time.Minute})
	if err != nil {
		return nil, err
	}
	defer ids.Close(context.Background()) // other programs have taken IDs since, so it may fail
	all := ways(ids, p.Tag, p.AtOnce)
	taken, errs := make([][]leaf.Range, len(all)), make([]error, len(all))
	var wg sync.WaitGroup
	for i, way := range all {
		wg.Go(func() { taken[i], errs[i] = way.take(p.IDs / int64(p.Lives*len(all))) })
	}
	wg.Wait()
	var ranges []leaf.Range
	for i := range all {
		if errs[i] != nil {
			return nil, errs[i]
		}
		ranges = append(ranges, taken[i]...)
	}
	return joined(ranges)
}

// take takes at least n IDs.
func (w way) take(n int64) (ranges []leaf.Range, err error) {
	for n > 0 {
		r, err := w(context.Background())
		if err != nil {
			return nil, err
		}
		n -= r.Len()
		ranges = appendJoined(ranges, r)
	}
	return ranges, nil
}

// joined sorts ranges and joins those that touch. It fails if two overlap.
func joined(ranges []leaf.Range) (few []leaf.Range, err error) {
	var all drivertest.Ranges
	all.Add(ranges...)
	if err := all.Check(); err != nil {
		return nil, err
	}
	for _, r := range all.Sorted() {
		few = appendJoined(few, r)
	}
	return few, nil
}

func appendJoined(ranges []leaf.Range, r leaf.Range) []leaf.Range {
	if last := len(ranges) - 1; last >= 0 && ranges[last].End == r.Start {
		ranges[last].End = r.End
		return ranges
	}
	return append(ranges, r)
}

// run runs the program in a process of its own and returns its IDs.
func (p *program) run(t testing.TB) ([]leaf.Range, error) {
	config, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), programVariable+"="+string(config))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, &stderr)
	}
	var ranges []leaf.Range
	return ranges, json.Unmarshal(out, &ranges)
}

// Four programs, two of them behind a relay, while a fifth takes single IDs from both servers:
// no ID comes twice, however often programs give back their rest.
func TestProgramsTakeDistinctIDs(t *testing.T) {
	t.Parallel()
	total := figure[int64](2_000_000, 100_000_000)
	central := serve(t, "--data", filepath.Join(t.TempDir(), "data"))
	relay := serve(t, "--data", filepath.Join(t.TempDir(), "data"), "--store", "leaf://"+central.url[len("http://"):])
	servers := []*server{central, relay}
	single := startTakesOf(t, "segment", sampleTag, 2, 7, func(client int) *server { return servers[client] })
	var all drivertest.Ranges
	var wg sync.WaitGroup
	begun := time.Now()
	for i := range 4 {
		wg.Go(func() {
			p := program{URL: servers[i%2].url, Tag: sampleTag, IDs: total / 4, Lives: figure(4, 25), Stock: 100_000, AtOnce: 1000}
			ranges, err := p.run(t)
			if err != nil {
				t.Errorf("program %d: %v", i, err)
			}
			all.Add(ranges...)
		})
	}
	wg.Wait()
	took := time.Since(begun)
	single.stop()
	single.check(t)
	all.Add(single.seen.Sorted()...)
	checkRanges(t, &all, total)
	t.Logf("in %v", took.Round(time.Millisecond))
}
