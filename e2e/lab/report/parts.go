package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf/e2e/lab"
)

// A part is a command of the lab.
type part struct {
	name   string
	folder string        // of the repository
	budget time.Duration // that it should need at most; twice that ends it
	args   string        // of go test -count=1 -v
}

// parts are what `make lab` runs, in at most 96 minutes.
var parts = []part{
	{"simulator", "e2e", 6 * time.Minute, "-run Schedules ./lab/sim"},
	{"saboteurs", "e2e", 3 * time.Minute, "-run Saboteurs ./lab/sim"},
	{"sabotaged servers", "e2e", 3 * time.Minute, "-tags leafsabotage -run SabotagedServers ."},
	{"sabotaged members", "e2e", 2 * time.Minute, "-tags leafsabotage -run SabotagedMembers ."},
	{"sabotaged edge", "e2e", 4 * time.Minute, "-tags leafsabotage -run Edges ./lab/saboteurs"},
	{"sabotaged kv", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^kv$ ./lab/saboteurs"},
	{"sabotaged sqlite", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^sqlite$ ./lab/saboteurs"},
	{"sabotaged etcd", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^etcd$ ./lab/saboteurs"},
	{"sabotaged redis", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^redis$ ./lab/saboteurs"},
	{"sabotaged nats", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^nats$ ./lab/saboteurs"},
	{"sabotaged zookeeper", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^zookeeper$ ./lab/saboteurs"},
	{"sabotaged mysql", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^mysql$ ./lab/saboteurs"},
	{"sabotaged postgres", "e2e", 3 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^postgres$ ./lab/saboteurs"},
	{"sabotaged ticket", "e2e", 2 * time.Minute, "-tags leafsabotage -run Drivers/^driver$/^ticket$ ./lab/saboteurs"},
	{"clusters", "e2e", 16 * time.Minute, "-parallel 6 -run ^Test(Cluster|Leases|Linearizable) ."},
	{"members", "e2e", 8 * time.Minute, "-run ^TestMembers$ ."},
	{"strict order", "e2e", 3 * time.Minute, "-parallel 6 -run ^TestStrictOrder ."},
	{"scenarios", "e2e", 18 * time.Minute, "-parallel 6 -skip ^Test(Cluster|Leases|Linearizable|StrictOrder|Members$) ."},
	{"model", ".", 6 * time.Minute, "./worker/model"},
	{"leases", ".", 30 * time.Second, "-run RandomFailOvers|NoTimeHasTwoOwners ./worker"},
	{"uid", "bench", 30 * time.Second, "-run UID ."},
	{"clocks", ".", 30 * time.Second, "-run FollowsTheClock ./snowflake"},
	{"many workers", ".", 6 * time.Minute, "-run Many ./driver/etcd ./driver/nats ./driver/zookeeper"},
}

// simulates is for how long the simulator runs; 0: for one round.
var simulates time.Duration

var errNoPart = errors.New("there is no such part")

// runParts runs the chosen parts, all by default, and keeps their output.
func runParts(ctx context.Context, dir, only string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	var failed []error
	for _, p := range chosen {
		if p.name == "simulator" {
			p.budget = max(p.budget, simulates+time.Minute)
		}
		if ctx.Err() != nil {
			return errors.Join(append(failed, ctx.Err())...)
		}
		done := lab.Part{Name: p.name, Budget: p.budget}
		start := time.Now()
		if err := p.run(ctx, dir); err != nil {
			done.Error = err.Error()
			failed = append(failed, fmt.Errorf("%s: %w", p.name, err))
		}
		done.Took = time.Since(start)
		fmt.Printf("lab: %-12s %8v of %v  %s\n", p.name, done.Took.Round(time.Second), p.budget, done.Error)
		if err := done.Save(dir); err != nil {
			return errors.Join(append(failed, err)...)
		}
	}
	return errors.Join(failed...)
}

func choose(only string) ([]part, error) {
	if only == "" {
		return parts, nil
	}
	var chosen []part
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(parts, func(p part) bool { return p.name == name })
		if i < 0 {
			return nil, fmt.Errorf("%q: %w", name, errNoPart)
		}
		chosen = append(chosen, parts[i])
	}
	return chosen, nil
}

// run runs the part and keeps its output in a file.
func (p part) run(ctx context.Context, dir string) error {
	log, err := os.Create(filepath.Join(dir, strings.ReplaceAll(p.name, " ", "-")+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	args := append([]string{"test", "-count=1", "-v", "-timeout", fmt.Sprint(2 * p.budget)}, strings.Fields(p.args)...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join("..", p.folder), log, log
	cmd.Env = append(os.Environ(), "LEAF_LAB=1", "LEAF_REPORT="+dir, "LEAF_FOR="+simulates.String())
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%w: see %s", err, log.Name())
	}
	return ranTests(log.Name())
}

// ranTests reports a part whose pattern matches no test of a package.
func ranTests(log string) error {
	text, err := os.ReadFile(log)
	if err == nil && bytes.Contains(text, []byte("[no tests to run]")) {
		err = fmt.Errorf("a pattern fits no test: see %s", log)
	}
	return err
}
