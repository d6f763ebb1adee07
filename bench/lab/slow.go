package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// storeDelay is how long a call of the slow store takes.
const storeDelay = 100 * time.Millisecond

// A slowProxy passes connections on to a store, and delays the client's bytes.
type slowProxy struct {
	net.Listener
	store string
	delay time.Duration
}

// startSlowProxy returns a proxy that ends when it is closed.
func startSlowProxy(store string, delay time.Duration) (*slowProxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &slowProxy{l, store, delay}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go p.pass(client)
		}
	}()
	return p, nil
}

func (p *slowProxy) pass(client net.Conn) {
	defer client.Close()
	store, err := net.Dial("tcp", p.store)
	if err != nil {
		return
	}
	defer store.Close()
	go func() {
		_, _ = io.Copy(client, store) // ends with either connection
		client.Close()
	}()
	type chunk struct {
		due  time.Time
		text []byte
	}
	late := make(chan chunk, 1000)
	go func() {
		for c := range late {
			time.Sleep(time.Until(c.due))
			_, _ = store.Write(c.text) // that it has ended is noticed by the reader
		}
		store.Close()
	}()
	defer close(late)
	buf := make([]byte, 1<<16)
	for {
		n, err := client.Read(buf)
		if n > 0 {
			late <- chunk{time.Now().Add(p.delay), append([]byte(nil), buf[:n]...)}
		}
		if err != nil {
			return
		}
	}
}

// slowWire compares HTTP requests at half load on two servers: the segments of one change while each
// call of its store, a Redis, takes 100 ms; the other has all its IDs in memory.
func slowWire(ctx context.Context, l *lab) (table string, found result, err error) {
	redis, err := testserver.StartRedis(nil)
	if err != nil {
		return "", result{}, err
	}
	defer redis.Close()
	if err := createWireTag(ctx, redis.URL()); err != nil {
		return "", result{}, err
	}
	proxy, err := startSlowProxy(redis.Addr(), storeDelay)
	if err != nil {
		return "", result{}, err
	}
	defer proxy.Close()
	plain, err := l.start(ctx, noWorkers, "--resp", "off", "--store", redis.URL())
	if err != nil {
		return "", result{}, err
	}
	defer plain.Stop()
	// A tenth of a second's IDs is the least that bridges a call; this holds some seconds'.
	slow, err := l.start(ctx, noWorkers+"segment: {max_stock: 60_000}\n", "--resp", "off", "--store", "redis://"+proxy.Addr().String())
	if err != nil {
		return "", result{}, err
	}
	defer slow.Stop()
	return l.besideSlow(ctx, plain, slow)
}

const noWorkers = "snowflake: {enable: false}\n"

func createWireTag(ctx context.Context, url string) error {
	b, err := drivers.Open(url, nil)
	if err != nil {
		return err
	}
	defer b.Close()
	return b.Tags.Init(ctx, segment.Tag{Name: wireTag, MaxID: 1, Step: 1000})
}

func (l *lab) besideSlow(ctx context.Context, plain, slow *bench.Leaf) (string, result, error) {
	all := newDistinct()
	server := func(name string, leaf *bench.Leaf) *wireServer {
		at := load.Server{Addr: strings.TrimPrefix(leaf.URL, "http://"), Timeout: 10 * time.Second}
		return &wireServer{name: name, pid: leaf.PID(), target: all.of(load.Routes(at, "segment")), clients: clients, pipeline: 1, ours: true}
	}
	none, change := server("no change", plain), server("changes, store calls of 100 ms", slow)
	var before wireFigures
	if err := none.openLoop(ctx, &before, 200_000, l.load); err != nil { // more than any has
		return "", result{}, err
	}
	rate := before.rate.median() / 2
	for _, s := range []*wireServer{none, change} { // until the servers know the demand
		if err := s.openLoop(ctx, &before, rate, l.load); err != nil {
			return "", result{}, err
		}
	}
	calls, err := storeCalls(ctx, plain, slow)
	if err != nil {
		return "", result{}, err
	}
	for range l.rounds + 2 { // the outermost figures vary most
		for _, s := range []*wireServer{none, change} {
			if err := s.openLoop(ctx, &s.half, rate, l.load); err != nil {
				return "", result{}, err
			}
		}
	}
	after, err := storeCalls(ctx, plain, slow)
	if err != nil {
		return "", result{}, err
	}
	var t strings.Builder
	fmt.Fprintf(&t, "\n| HTTP, %.0f requests a second | store calls | p50, ms | p99, ms | p99.9, ms |\n|---|---|---|---|---|\n", rate)
	for i, s := range []*wireServer{none, change} {
		fmt.Fprintf(&t, "| %s | %.0f | %s | %s | %s |\n", s.name, after[i]-calls[i], s.half.p50.spread(), s.half.p99.spread(), s.half.p999.spread())
	}
	said, err := all.result()
	of := none.half.p999
	return t.String() + said, result{figure: change.half.p999.over(of), limit: of.most() / of.median()}, err
}

// storeCalls is how many allocations each server has asked its store for.
func storeCalls(ctx context.Context, servers ...*bench.Leaf) (all []float64, err error) {
	for _, s := range servers {
		n, err := s.Metric(ctx, `leaf_tag_store_calls_total{tag="`+wireTag+`"}`)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, nil
}
