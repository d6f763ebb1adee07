package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
)

// profileFile is where the compiler of the program looks for its profile.
const profileFile = "default.pgo"

// A guided is the program as one way of building it makes it.
type guided struct {
	name    string
	profile string // for the compiler
	took    time.Duration
	size    int64
	leaf    *bench.Leaf
	servers []*wireServer
}

// profiled compares the program with itself, built with a profile of this run's load: the routes of
// HTTP, INCR, gRPC, and refills.
func profiled(ctx context.Context, l *lab) (report, error) {
	plain := &guided{name: "without", profile: "off"}
	if err := plain.start(ctx, l); err != nil {
		return report{}, err
	}
	defer plain.leaf.Stop()
	profile, err := plain.record(ctx, l)
	if err != nil {
		return report{}, err
	}
	with := &guided{name: "with", profile: profile}
	if err := with.start(ctx, l); err != nil {
		return report{}, err
	}
	defer with.leaf.Stop()
	var t strings.Builder
	t.WriteString("| CPU of the server, µs a request | without a profile | with one | saved, % |\n|---|---|---|---|\n")
	var saved figure
	for i, s := range plain.servers {
		other := with.servers[i]
		for range 2 * l.rounds {
			for _, turn := range []*wireServer{s, other} {
				if _, err := turn.measure(ctx, &turn.full, load.Options{Duration: l.load / 2}); err != nil {
					return report{}, err
				}
			}
		}
		less := other.full.cpu.over(s.full.cpu).each(func(x float64) float64 { return 100 * (1 - x) })
		fmt.Fprintf(&t, "| %s | %s | %s | %s |\n", s.name, s.full.cpu.spread(), other.full.cpu.spread(), less.spread())
		saved = append(saved, less.median())
	}
	fmt.Fprintf(&t, "\n| the program | without a profile | with one |\n|---|---|---|\n| MB | %s | %s |\n| s to build | %s | %s |\n",
		short(float64(plain.size)/1e6), short(float64(with.size)/1e6), short(plain.took.Seconds()), short(with.took.Seconds()))
	return report{table: t.String(), found: map[string]result{"pgo": {figure: saved}}}, nil
}

// start builds the program and starts it.
func (g *guided) start(ctx context.Context, l *lab) error {
	dir, err := os.MkdirTemp(l.dir, "pgo")
	if err != nil {
		return err
	}
	began := time.Now()
	binary, err := bench.Build(ctx, l.root, dir, "-pgo="+g.profile)
	if err != nil {
		return err
	}
	g.took = time.Since(began)
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	g.size = info.Size()
	g.leaf, err = bench.Start(binary, "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--data", filepath.Join(dir, "data"))
	if err != nil {
		return err
	}
	at := func(addr string) load.Server { return load.Server{Addr: addr, Timeout: 10 * time.Second} }
	of := func(name string, t load.Target, pipeline int) {
		g.servers = append(g.servers, &wireServer{name: name, pid: g.leaf.PID(), target: t, clients: clients, pipeline: pipeline, ours: true})
	}
	web := strings.TrimPrefix(g.leaf.URL, "http://")
	of("HTTP, Java Leaf's route", load.Routes(at(web), "segment"), 1)
	of("HTTP, `/v1/ids`", load.V1(at(web), "segment"), 1)
	of("Redis protocol", &load.RESP{Server: at(g.leaf.RESP), Scheme: "segment"}, 1)
	of("Redis protocol, 16 at once", &load.RESP{Server: at(g.leaf.RESP), Scheme: "segment"}, 16)
	of("gRPC, one connection", load.NewGRPC(at(g.leaf.GRPC), "segment", 1), 1)
	return nil
}

// record puts each load on the server and returns the file with its profile.
func (g *guided) record(ctx context.Context, l *lab) (string, error) {
	var profile string
	var all errgroup.Group
	all.Go(func() (err error) {
		profile, err = g.leaf.Get(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", max(1, int(l.load.Seconds()*float64(len(g.servers)+1)))))
		return err
	})
	var none wireFigures
	for _, s := range g.servers {
		if _, err := s.measure(ctx, &none, load.Options{Duration: l.load}); err != nil {
			return "", err
		}
	}
	if err := all.Wait(); err != nil {
		return "", err
	}
	file := filepath.Join(l.dir, profileFile)
	return file, os.WriteFile(file, []byte(profile), 0o644)
}
