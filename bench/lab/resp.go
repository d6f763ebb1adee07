package main

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
)

// pipelines are how many commands a client sends at once.
var pipelines = []int{1, 16, 64}

// respWire compares INCR with a real Redis that does not write to disk.
func respWire(ctx context.Context, l *lab) (r report, err error) {
	redis, err := testserver.StartRedis(&testserver.RedisOptions{Config: [][2]string{{"appendonly", "no"}}})
	if err != nil {
		return r, err
	}
	defer redis.Close()
	err = l.serveLeaf(ctx, func(leaf *bench.Leaf) error {
		r, err = l.respBeside(ctx, redis, leaf)
		return err
	})
	return r, err
}

func (l *lab) respBeside(ctx context.Context, redis *testserver.RedisServer, leaf *bench.Leaf) (report, error) {
	all, found := newDistinct(), make(map[string]result)
	at := func(addr string) load.Target {
		return &load.RESP{Server: load.Server{Addr: addr, Timeout: 10 * time.Second}, Scheme: "segment"}
	}
	w := &wireRun{lab: l}
	for _, p := range pipelines {
		w.servers = append(w.servers,
			&wireServer{name: fmt.Sprint("Redis, -P ", p), pid: redis.PID(), target: at(redis.Addr()), clients: clients, pipeline: p},
			&wireServer{name: fmt.Sprint("Leaf, -P ", p), pid: leaf.PID(), target: all.of(at(leaf.RESP)), clients: clients, pipeline: p, ours: true})
	}
	if err := w.saturate(ctx); err != nil {
		return report{}, err
	}
	if err := w.openLoops(ctx, w.servers[0], w.servers[1]); err != nil {
		return report{}, err
	}
	for i, p := range pipelines {
		redis, leaf := w.servers[2*i].full, w.servers[2*i+1].full
		found[fmt.Sprint("resp-", p)] = result{figure: leaf.cpu.over(redis.cpu)}
		found[fmt.Sprint("resp-rate-", p)] = result{figure: leaf.rate.over(redis.rate)}
	}
	allocs, err := w.servers[1].allocations(ctx, leaf, l.load)
	if err != nil {
		return report{}, err
	}
	found["resp-allocs"] = result{figure: allocs}
	summary, err := all.result()
	return report{
		table:   w.table() + summary,
		picture: w.picture("dark: CPU of an INCR in µs; light: p99 in ms, at 80 % load where measured; logarithmic"),
		found:   found,
	}, err
}
