package main

import (
	"context"
	"strings"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
)

const constantPage = `keepalive_requests 1000000000; server { listen 80; location / { return 200 "1234567890"; } }`

// httpWire compares GET of an ID with an nginx that answers a constant.
func httpWire(ctx context.Context, l *lab) (r report, err error) {
	nginx, err := testserver.StartNginx(constantPage)
	if err != nil {
		return r, err
	}
	defer nginx.Close()
	err = l.serveLeaf(ctx, func(leaf *bench.Leaf) error {
		r, err = l.httpBeside(ctx, nginx, leaf)
		return err
	})
	return r, err
}

func (l *lab) httpBeside(ctx context.Context, nginx *testserver.NginxServer, leaf *bench.Leaf) (report, error) {
	all := newDistinct()
	at := func(url string) load.Server {
		return load.Server{Addr: strings.TrimPrefix(url, "http://"), Timeout: 10 * time.Second}
	}
	peer := &wireServer{name: "nginx, `return 200`", pid: nginx.PID(), target: load.Routes(at(nginx.URL()), "segment"), clients: clients, pipeline: 1}
	ours := &wireServer{name: "Leaf, `/api/segment/get/{key}`", pid: leaf.PID(), target: all.of(load.Routes(at(leaf.URL), "segment")),
		clients: clients, pipeline: 1, ours: true}
	v1 := &wireServer{name: "Leaf, `/v1/ids/segment/{key}`", pid: leaf.PID(), target: all.of(load.V1(at(leaf.URL), "segment")),
		clients: clients, pipeline: 1, ours: true}
	w := &wireRun{l, []*wireServer{peer, ours, v1}}
	if err := w.saturate(ctx); err != nil {
		return report{}, err
	}
	if err := w.openLoops(ctx, peer, ours); err != nil {
		return report{}, err
	}
	allocs, err := ours.allocations(ctx, leaf, l.load)
	if err != nil {
		return report{}, err
	}
	summary, err := all.result()
	return report{
		table:   w.table() + summary,
		picture: w.picture("dark: CPU of a request in µs; light: p99 in ms, at 80 % load where measured; logarithmic"),
		found: map[string]result{
			"http":        {figure: ours.full.cpu.over(peer.full.cpu)},
			"http-p99":    {figure: ours.eighty.p99.over(peer.eighty.p99)},
			"http-allocs": {figure: allocs},
		},
	}, err
}
