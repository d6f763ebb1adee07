package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
)

// A flood is what many clients send without an end.
type flood struct {
	name    string
	clients int
	request string
	reads   bool // the clients read the answers
	http    bool
}

const uuidPage = "GET /api/uuid/get/v4 HTTP/1.1\r\nHost: leaf\r\n\r\n"

var floods = []flood{
	{name: "100 clients take 1,000 UUIDs at once", clients: 100, request: "LEAF.NEXT uuid v4 COUNT 1000\r\n", reads: true},
	{name: "400 clients do so and do not read", clients: 400, request: "LEAF.NEXT uuid v4 COUNT 1000\r\n"},
	{name: "2,000 clients send `COMMAND` and do not read", clients: 2000, request: "COMMAND\r\n"},
	{name: "400 clients take single IDs and do not read", clients: 400, request: "LEAF.NEXT uuid v4\r\n"},
	{name: "400 clients do so over HTTP", clients: 400, request: uuidPage, http: true},
}

// floodRate is how many requests a second ten clients make whose latencies are measured.
const floodRate = 500

// underFloods measures the requests of ten clients while others flood the server, from the first
// moment of the flood.
func underFloods(ctx context.Context, l *lab) (report, error) {
	var t strings.Builder
	t.WriteString("| flood | p50, ms | p99, ms | p99.9, ms | memory, MB |\n|---|---|---|---|---|\n")
	var worst figure
	for i, f := range floods {
		var took wireFigures
		var memory figure
		for range min(l.rounds, 3) {
			err := l.serveLeaf(ctx, func(leaf *bench.Leaf) error {
				most, err := l.underFlood(ctx, i, leaf, &took)
				memory = append(memory, most/1e6)
				return err
			})
			if err != nil {
				return report{}, fmt.Errorf("%s: %w", f.name, err)
			}
		}
		fmt.Fprintf(&t, "| %s | %.2f | %s | %.2f | %s |\n", f.name, took.p50.median(), took.p99.spread(), took.p999.median(), short(memory.most()))
		if len(worst) == 0 || took.p99.median() > worst.median() {
			worst = took.p99
		}
	}
	return report{table: t.String(), found: map[string]result{"flood": {figure: worst}}}, nil
}

// underFlood measures one round, and returns the most memory that the server has had.
func (l *lab) underFlood(ctx context.Context, i int, leaf *bench.Leaf, took *wireFigures) (memory float64, err error) {
	all := newDistinct() // of this server: each one has a counter of its own
	at := load.Server{Addr: leaf.RESP, Timeout: 10 * time.Second}
	s := &wireServer{pid: leaf.PID(), target: all.of(&load.RESP{Server: at, Scheme: "segment"}), clients: 10, pipeline: 1, ours: true}
	if floods[i].http {
		at.Addr = strings.TrimPrefix(leaf.URL, "http://")
		s.target = all.of(load.Routes(at, "segment"))
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "-flood", strconv.Itoa(i)+"@"+at.Addr)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	defer func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}()
	if _, err := s.measure(ctx, took, load.Options{Rate: floodRate, Duration: 2 * l.load}); err != nil {
		return 0, err
	}
	if _, err := all.result(); err != nil {
		return 0, err
	}
	m, err := bench.MemoryOf(leaf.PID())
	return m.Most, err
}

// beFlood is the clients of a flood, until this process is killed.
func beFlood(which string) error {
	number, addr, _ := strings.Cut(which, "@")
	i, err := strconv.Atoi(number)
	if err != nil || i < 0 || i >= len(floods) {
		return fmt.Errorf("there is no flood %q", number)
	}
	f := floods[i]
	pipeline := []byte(strings.Repeat(f.request, (64<<10)/len(f.request)))
	ended := make(chan error)
	for range f.clients {
		go func() {
			for {
				if err := f.send(addr, pipeline); err != nil {
					ended <- err
				}
			}
		}()
	}
	return <-ended
}

// send sends pipelines until the server ends the connection, which is not an error.
func (f *flood) send(addr string, pipeline []byte) error {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if f.reads {
		go func() { _, _ = io.Copy(io.Discard, conn) }() // ends with the connection
	}
	for err == nil {
		_, err = conn.Write(pipeline)
	}
	return nil
}
