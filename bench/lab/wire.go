package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
)

// wireTag is a tag that a new server has, and a key that a Redis makes.
const wireTag = "leaf-segment-test"

// clients is how many of them put load on a server at the same time.
const clients = 50

// A wireServer is one that answers requests, in one way of asking it.
type wireServer struct {
	name     string
	pid      int
	target   load.Target
	clients  int
	pipeline int
	count    int  // IDs of a request; 0: one
	ours     bool // a duplicate is an error

	full         wireFigures // as many requests as there can be
	most         wireFigures // the same in an open loop: more are due
	half, eighty wireFigures // in an open loop, at parts of that
}

// wireFigures are those of one server under one load.
type wireFigures struct {
	rate           figure // requests a second
	cpu            figure // of the server for a request, in µs
	own            figure // the same of the generator of the load
	p50, p99, p999 figure // ms
}

// A wireRun measures several servers in turns.
type wireRun struct {
	*lab
	servers []*wireServer
}

// saturate has every server answer as many requests as it can, in turns.
func (w *wireRun) saturate(ctx context.Context) error {
	for range w.rounds {
		for _, s := range w.servers {
			if _, err := s.measure(ctx, &s.full, load.Options{Duration: w.load}); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// openLoops loads a server with an open loop at half of its capacity, and at 80 %, in turns.
func (w *wireRun) openLoops(ctx context.Context, servers ...*wireServer) error {
	for range w.rounds {
		for _, s := range servers {
			if err := s.openLoop(ctx, &s.most, 1.1*s.full.rate.median(), w.load/2); err != nil {
				return err
			}
		}
	}
	for range w.rounds {
		for _, s := range servers {
			err := s.openLoop(ctx, &s.half, .5*s.most.rate.median(), w.load)
			if err == nil {
				err = s.openLoop(ctx, &s.eighty, .8*s.most.rate.median(), w.load)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *wireServer) openLoop(ctx context.Context, f *wireFigures, rate float64, d time.Duration) error {
	if _, err := s.measure(ctx, f, load.Options{Rate: rate, WarmUp: d / 8, Duration: d}); err != nil {
		return fmt.Errorf("%s at %.0f requests a second: %w", s.name, rate, err)
	}
	return nil
}

// measure runs load once, and returns how many IDs it had.
func (s *wireServer) measure(ctx context.Context, f *wireFigures, o load.Options) (ids int64, err error) {
	o.Target, o.Keys, o.Count, o.Memory = s.target, []load.Key{{Name: wireTag, Space: wireTag}}, max(1, s.count), 1<<30
	o.Clients, o.Pipeline = s.clients, s.pipeline
	before, err := bench.CPUSeconds(s.pid)
	if err != nil {
		return 0, err
	}
	own := processTime()
	res, err := load.Run(ctx, o)
	if err != nil {
		return 0, err
	}
	after, err := bench.CPUSeconds(s.pid)
	switch {
	case err != nil:
		return 0, err
	case res.Failed > 0:
		return 0, fmt.Errorf("%d requests failed: %+v", res.Failed, res.Errors)
	case s.ours && (res.Check.Duplicates > 0 || res.Check.Kept < res.Check.Checked):
		return 0, fmt.Errorf("of %d IDs %d were compared, %d twice: %v", res.Check.Checked, res.Check.Kept, res.Check.Duplicates, res.Check.Examples)
	}
	ms := func(d time.Duration) float64 { return d.Seconds() * 1000 }
	f.rate = append(f.rate, res.RequestRate)
	f.cpu = append(f.cpu, (after-before)*1e6/float64(res.Check.Checked)) // of all, the warm-up too
	f.own = append(f.own, (processTime()-own).Seconds()*1e6/float64(res.Check.Checked))
	f.p50, f.p99, f.p999 = append(f.p50, ms(res.Latency.P50)), append(f.p99, ms(res.Latency.P99)), append(f.p999, ms(res.Latency.P999))
	return res.Check.Checked, nil
}

// wireCPU is the head of a column.
const wireCPU = "CPU of the server for one, µs"

func (w *wireRun) table() string {
	var t strings.Builder
	t.WriteString("| server | load | requests a second | " + wireCPU + " | of the generator | p50, ms | p99, ms | p99.9, ms |\n|---|---|---|---|---|---|---|---|\n")
	for _, s := range w.servers {
		for _, l := range []struct {
			name string
			f    wireFigures
		}{{"closed loop", s.full}, {"open loop, half load", s.half}, {"open loop, 80 % load", s.eighty}} {
			if len(l.f.rate) == 0 {
				continue
			}
			fmt.Fprintf(&t, "| %s | %s | %.0f | %s | %s | %.2f | %s | %.2f |\n", s.name, l.name, l.f.rate.median(), l.f.cpu.spread(), short(l.f.own.median()),
				l.f.p50.median(), l.f.p99.spread(), l.f.p999.median())
		}
	}
	return t.String()
}

func (w *wireRun) picture(title string) string {
	chart := bars{title: title}
	for _, s := range w.servers {
		other := s.full.p99
		if len(s.eighty.p99) > 0 {
			other = s.eighty.p99
		}
		chart.add(strings.ReplaceAll(s.name, "`", ""), s.full.cpu.median(), other.median())
	}
	return chart.svg()
}

// allocations counts the server's allocations per request: those of a long run less those of a short
// one with the same connections.
func (s *wireServer) allocations(ctx context.Context, leaf *bench.Leaf, d time.Duration) (f figure, err error) {
	for range 3 {
		few, base, err := s.mallocs(ctx, leaf, d/4)
		if err != nil {
			return nil, err
		}
		many, all, err := s.mallocs(ctx, leaf, d)
		if err != nil {
			return nil, err
		}
		f = append(f, max(0, all-base)/(many-few))
	}
	return f, nil
}

// mallocs sends requests for a time and returns their number and the server's allocations.
func (s *wireServer) mallocs(ctx context.Context, leaf *bench.Leaf, d time.Duration) (requests, mallocs float64, err error) {
	before, err := leaf.Mallocs(ctx)
	if err != nil {
		return 0, 0, err
	}
	var f wireFigures
	n, err := s.measure(ctx, &f, load.Options{Duration: d})
	if err != nil {
		return 0, 0, err
	}
	after, err := leaf.Mallocs(ctx)
	return float64(n), after - before, err
}

// start starts a server in a new folder, with a configuration unless that is empty.
func (l *lab) start(ctx context.Context, config string, args ...string) (*bench.Leaf, error) {
	binary, err := l.leaf(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(l.dir, "data")
	if err != nil {
		return nil, err
	}
	args = append(args, "--listen", "127.0.0.1:0", "--data", filepath.Join(dir, "data"))
	if config != "" {
		file := filepath.Join(dir, "leaf.yaml")
		if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--config", file)
	}
	return bench.Start(binary, args...)
}

// serveLeaf starts a server with an embedded store for f.
func (l *lab) serveLeaf(ctx context.Context, f func(*bench.Leaf) error) error {
	leaf, err := l.start(ctx, "", "--resp", "127.0.0.1:0", "--grpc", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer leaf.Stop()
	if err := f(leaf); err != nil {
		return errors.Join(err, errors.New(leaf.Log()))
	}
	return nil
}
