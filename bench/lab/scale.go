package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/client"
)

// What a scale of 1 has.
const (
	scaleTags        = 1_000_000
	scaleServers     = 1000
	scaleConnections = 10_000
	scaleClients     = 100
)

// scaled is n at the scale of this run, at least 10.
func (l *lab) scaled(n int) int { return max(10, int(float64(n)*l.scale)) }

// scale measures how the costs of one server grow with tags, connections and clients, and those of a
// store with servers.
func scale(ctx context.Context, l *lab) (report, error) {
	var t strings.Builder
	found := make(map[string]result)
	for _, part := range []func(context.Context, *lab, *strings.Builder, map[string]result) error{manyTags, manyServers, manyConnections, manyClients} {
		if err := part(ctx, l, &t, found); err != nil {
			return report{}, fmt.Errorf("%w\n%s", err, t.String())
		}
	}
	return report{table: t.String(), found: found}, nil
}

// pages are the requests whose cost may grow with the number of tags.
var pages = []string{"/db", "/cache", "/metrics", "/readyz?verbose"}

// manyTags compares a tenth of the tags with all of them.
func manyTags(ctx context.Context, l *lab, t *strings.Builder, found map[string]result) error {
	t.WriteString("| tags | first ID after, ms | resident, idle, MB | each tag used once, s | resident then, MB | heap of a tag, bytes | CPU idle, % of a core |")
	for _, page := range pages {
		fmt.Fprintf(t, " `%s`, ms CPU (kB) |", page)
	}
	t.WriteString("\n|---|---|---|---|---|---|---|" + strings.Repeat("---|", len(pages)) + "\n")
	few, many := &footing{tags: l.scaled(scaleTags / 10), rounds: 1}, &footing{tags: l.scaled(scaleTags), rounds: 1}
	for _, f := range []*footing{few, many} {
		dir, err := os.MkdirTemp(l.dir, "scale")
		if err == nil {
			err = createTags(ctx, dir, f.tags)
		}
		var costs []string
		f.visit = func(s *bench.Leaf) (err error) {
			costs, err = pageCosts(ctx, s)
			return err
		}
		if err == nil {
			err = f.measure(ctx, l, dir)
		}
		if err != nil {
			return fmt.Errorf("%d tags: %w", f.tags, err)
		}
		fmt.Fprintf(t, "| %d | %s | %s | %s | %s | %s | %s | %s |\n", f.tags, short(f.first.median()), short(f.idle.median()), short(f.used.median()),
			short(f.then.median()), short(f.heap.median()), short(f.share.median()), strings.Join(costs, " | "))
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	found["scale-tag-memory"] = result{figure: many.heap}
	found["scale-tags-cpu"] = result{figure: many.share}
	found["scale-tags-use"] = result{figure: many.served.over(few.served).each(func(x float64) float64 { return x * float64(few.tags) / float64(many.tags) })}
	return nil
}

// pageCosts is the server's processor time for each page, and its size.
func pageCosts(ctx context.Context, s *bench.Leaf) (costs []string, err error) {
	for _, page := range pages {
		const times = 3
		before, err := bench.CPUSeconds(s.PID())
		if err != nil {
			return nil, err
		}
		size := 0
		for range times {
			text, err := s.Get(ctx, page)
			if err != nil {
				return nil, err
			}
			size = len(text)
		}
		after, err := bench.CPUSeconds(s.PID())
		if err != nil {
			return nil, err
		}
		costs = append(costs, fmt.Sprintf("%s (%s)", short((after-before)*1000/times), short(float64(size)/1e3)))
	}
	return costs, nil
}

// manyConnections has idle connections to a server, each after one request.
func manyConnections(ctx context.Context, l *lab, t *strings.Builder, found map[string]result) error {
	t.WriteString("\n| connections | opened and used in, s | memory not of files before, MB | with them, MB | for one, kB | CPU idle, % of a core |\n|---|---|---|---|---|---|\n")
	for _, protocol := range []string{"HTTP", "Redis protocol"} {
		err := l.serveLeaf(ctx, func(s *bench.Leaf) error {
			addr, request := strings.TrimPrefix(s.URL, "http://"), "GET /api/segment/get/"+wireTag+" HTTP/1.1\r\nHost: leaf\r\n\r\n"
			if protocol != "HTTP" {
				addr, request = s.RESP, "INCR "+wireTag+"\r\n"
			}
			time.Sleep(rest)
			before, err := bench.MemoryOf(s.PID())
			if err != nil {
				return err
			}
			began, n := time.Now(), l.scaled(scaleConnections)
			conns, err := connectAll(addr, request, n)
			defer func() {
				for _, c := range conns {
					c.Close()
				}
			}()
			if err != nil {
				return err
			}
			took := time.Since(began)
			time.Sleep(5 * time.Second)
			share, err := busy(s.PID(), 10*time.Second)
			if err != nil {
				return err
			}
			with, err := bench.MemoryOf(s.PID())
			if err != nil {
				return err
			}
			each := (with.Own - before.Own) / 1e3 / float64(n)
			fmt.Fprintf(t, "| %d, %s | %s | %s | %s | %s | %s |\n", n, protocol, short(took.Seconds()), short(before.Own/1e6), short(with.Own/1e6),
				short(each), short(share))
			found["scale-conns-cpu"] = result{figure: append(found["scale-conns-cpu"].figure, share)}
			return nil
		})
		if err != nil {
			return fmt.Errorf("connections over %s: %w", protocol, err)
		}
	}
	return nil
}

// connectAll opens connections, each of which sends a request and reads an answer.
func connectAll(addr, request string, n int) ([]net.Conn, error) {
	conns := make([]net.Conn, n)
	var all errgroup.Group
	all.SetLimit(callers)
	for i := range conns {
		all.Go(func() error {
			conn, err := net.Dial("tcp", addr)
			if err != nil {
				return err
			}
			conns[i] = conn
			if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
				return err
			}
			if _, err := conn.Write([]byte(request)); err != nil {
				return err
			}
			var answer [512]byte
			_, err = conn.Read(answer[:])
			return err
		})
	}
	err := all.Wait()
	opened := conns[:0]
	for _, c := range conns {
		if c != nil {
			opened = append(opened, c)
		}
	}
	return opened, err
}

// manyClients has programs with a stock each take IDs of one tag.
func manyClients(ctx context.Context, l *lab, t *strings.Builder, _ map[string]result) error {
	n := l.scaled(scaleClients)
	t.WriteString("\n| clients with stock | IDs a second, all | calls a second to the server | CPU of the server, % of a core | IDs a call |\n|---|---|---|---|---|\n")
	return l.serveLeaf(ctx, func(s *bench.Leaf) error {
		counted := &callCount{}
		clients := make([]*client.Client, n)
		for i := range clients {
			c, err := client.New(s.URL, &client.Options{OnCall: counted.add})
			if err != nil {
				return err
			}
			defer c.Close(context.WithoutCancel(ctx))
			clients[i] = c
		}
		const window = 30 * time.Second
		if err := takeAll(ctx, clients, window); err != nil { // the stock grows with its use
			return err
		}
		var share float64
		watched := make(chan error, 1)
		before := counted.Load()
		go func() (err error) {
			defer func() { watched <- err }()
			share, err = busy(s.PID(), window)
			return err
		}()
		err := errors.Join(takeAll(ctx, clients, window), <-watched)
		if err != nil {
			return err
		}
		calls, ids := float64(counted.Load()-before)/window.Seconds(), float64(n)*clientRate
		fmt.Fprintf(t, "| %d | %s | %s | %s | %s |\n", n, short(ids), short(calls), short(share), short(ids/max(calls, 1/window.Seconds())))
		return nil
	})
}

// clientRate is how many IDs a second each client takes.
const clientRate = 1000

func takeAll(ctx context.Context, clients []*client.Client, d time.Duration) error {
	const every = 100 * time.Millisecond
	var all errgroup.Group
	began := time.Now()
	for _, c := range clients {
		all.Go(func() error {
			for due := began; due.Before(began.Add(d)); due = due.Add(every) {
				time.Sleep(time.Until(due))
				for range int(clientRate * every.Seconds()) {
					if _, err := c.Next(ctx, wireTag); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	return all.Wait()
}

// A callCount counts the calls of clients.
type callCount struct{ atomic.Int64 }

func (c *callCount) add(client.Call) { c.Add(1) }
