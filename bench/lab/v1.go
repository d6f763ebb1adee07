package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
)

// An asking is a way to ask /v1 for IDs.
type asking struct {
	name  string
	key   string // of its goal
	query string
	count int
}

var askings = []asking{
	{"one ID", "v1-one", "", 1},
	{"100 IDs", "v1-100", "n=100", 100},
	{"1,000 IDs", "v1-1000", "n=1000", 1000},
	{"100 IDs as ranges", "v1-ranges", "ranges=1&n=100", 100},
}

// of returns a target that asks so.
func (a asking) of(server load.Server) load.Target {
	t := load.V1(server, "segment")
	t.Path = func(key string, _ int) string {
		path := "/v1/ids/segment/" + url.PathEscape(key)
		if a.query != "" {
			path += "?" + a.query
		}
		return path
	}
	return t
}

// batches compares answers of /v1 with a net/http handler that writes the same bytes, and streams of gRPC
// with those of a bare server of package grpc.
func batches(ctx context.Context, l *lab) (r report, err error) {
	err = l.serveLeaf(ctx, func(leaf *bench.Leaf) error {
		bodies := make(map[string]string)
		for _, a := range askings {
			if bodies[a.query], err = leaf.Get(ctx, strings.TrimSuffix("/v1/ids/segment/"+wireTag+"?"+a.query, "?")); err != nil {
				return err
			}
		}
		text, err := json.Marshal(bodies)
		if err != nil {
			return err
		}
		file := filepath.Join(l.dir, "bodies.json")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		web, webPID, stop, err := startPeer(ctx, "-constant", file)
		if err != nil {
			return err
		}
		defer stop()
		echo, echoPID, stopEcho, err := startPeer(ctx, "-echo")
		if err != nil {
			return err
		}
		defer stopEcho()
		r, err = l.batchesBeside(ctx, leaf, peerProcess{web, webPID}, peerProcess{echo, echoPID})
		return err
	})
	return r, err
}

// A peerProcess is a bare server.
type peerProcess struct {
	addr string
	pid  int
}

func (l *lab) batchesBeside(ctx context.Context, leaf *bench.Leaf, web, echo peerProcess) (report, error) {
	all, w := newDistinct(), &wireRun{lab: l}
	at := func(addr string) load.Server { return load.Server{Addr: addr, Timeout: 10 * time.Second} }
	var keys []string
	pair := func(key, peer, name string, pid int, bare, ours load.Target, shape wireServer) {
		theirs := shape
		theirs.name, theirs.pid, theirs.target = peer+", "+name, pid, bare
		shape.name, shape.pid, shape.target, shape.ours = "Leaf, "+name, leaf.PID(), all.of(ours), true
		w.servers, keys = append(w.servers, &theirs, &shape), append(keys, key)
	}
	for _, a := range askings {
		pair(a.key, "`net/http`, constant", a.name, web.pid, a.of(at(web.addr)), a.of(at(strings.TrimPrefix(leaf.URL, "http://"))),
			wireServer{clients: clients, pipeline: 1, count: a.count})
	}
	bare, err := newStreams(echo.addr)
	if err != nil {
		return report{}, err
	}
	defer bare.conn.Close()
	ours, err := newStreams(leaf.GRPC)
	if err != nil {
		return report{}, err
	}
	defer ours.conn.Close()
	pair("v1-stream-1", "grpc-go, bare", "50 streams, one in flight on each", echo.pid, bare, ours, wireServer{clients: clients, pipeline: 1})
	pair("v1-stream-64", "grpc-go, bare", "2 streams, 64 in flight on each", echo.pid, bare, ours, wireServer{clients: 2, pipeline: 64})
	if err := w.saturate(ctx); err != nil {
		return report{}, err
	}
	found := make(map[string]result)
	for i, key := range keys {
		found[key] = result{figure: w.servers[2*i+1].full.cpu.over(w.servers[2*i].full.cpu)}
	}
	summary, err := all.result()
	return report{table: w.table() + summary, found: found}, err
}

// serveConstants is a server of net/http that answers with the bodies in a file, by the query. It
// prints its address.
func serveConstants(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var bodies map[string]string
	if err := json.Unmarshal(text, &bodies); err != nil {
		return err
	}
	made := make(map[string][]byte)
	for query, body := range bodies {
		made[query] = []byte(body)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(listener.Addr())
	return http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := made[r.URL.RawQuery]
		h := w.Header()
		h["Cache-Control"], h["Content-Type"] = noStore, jsonType
		h["Content-Length"] = []string{strconv.Itoa(len(body))}
		_, _ = w.Write(body) // the client may be gone
	}))
}

var noStore, jsonType = []string{"no-store"}, []string{"application/json"}

// startPeer starts this program as a bare server, which prints its address.
func startPeer(ctx context.Context, args ...string) (addr string, pid int, stop func(), err error) {
	self, err := os.Executable()
	if err != nil {
		return "", 0, nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	stop = func() {
		cancel()
		_ = cmd.Wait() // it was killed
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return "", 0, nil, err
	}
	addr, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", 0, nil, errors.Join(fmt.Errorf("the server %q has no address", args), err)
	}
	return strings.TrimSpace(addr), cmd.Process.Pid, stop, nil
}
