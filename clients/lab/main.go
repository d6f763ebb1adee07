// The lab command starts Leaf servers for the tests of the clients, in every language, and harms
// them. It prints its own URL and ends with its standard input.
//
//	POST   /worlds?servers=2&tag=order:1000    servers with one store; see [spec]
//	POST   /worlds/{world}/{server}/{harm}     see [node.harm]
//	GET    /worlds/{world}/calls               how many Advance calls each server was sent
//	DELETE /worlds/{world}
//	POST   /freezes?pid=N&ms=2000              stops a process of the caller for that long, then answers
//
// The addresses of a world are those of proxies, which stay when a server restarts.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run() error {
	binary := os.Getenv("LEAF_BIN")
	if binary == "" {
		return fmt.Errorf("LEAF_BIN does not name the program leaf")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	l := &lab{binary: binary, worlds: make(map[string]*world)}
	defer l.close()
	go func() { _ = http.Serve(listener, l.handler()) }() // until the process ends
	fmt.Printf("http://%s\n", listener.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// A lab has the worlds of one process of tests.
type lab struct {
	binary string

	mu     sync.Mutex
	worlds map[string]*world
	made   int
}

func (l *lab) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /worlds", l.create)
	mux.HandleFunc("POST /worlds/{world}/{server}/{harm}", l.harm)
	mux.HandleFunc("GET /worlds/{world}/calls", l.calls)
	mux.HandleFunc("DELETE /worlds/{world}", l.remove)
	mux.HandleFunc("POST /freezes", freeze)
	return mux
}

func (l *lab) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range l.worlds {
		w.close()
	}
}

func (l *lab) create(rw http.ResponseWriter, r *http.Request) {
	s, err := parseSpec(r.URL.Query())
	var w *world
	if err == nil {
		w, err = newWorld(l.binary, s)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	l.mu.Lock()
	l.made++
	w.Name = strconv.Itoa(l.made)
	l.worlds[w.Name] = w
	l.mu.Unlock()
	answer(rw, w)
}

func answer(rw http.ResponseWriter, v any) {
	rw.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(rw).Encode(v) // the test has ended
}

func (l *lab) world(r *http.Request) *world {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.worlds[r.PathValue("world")]
}

func (l *lab) harm(rw http.ResponseWriter, r *http.Request) {
	w := l.world(r)
	i, err := strconv.Atoi(r.PathValue("server"))
	if w == nil || err != nil || i < 0 || i >= len(w.nodes) {
		http.NotFound(rw, r)
		return
	}
	if err := w.nodes[i].harm(r.PathValue("harm")); err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}

func (l *lab) calls(rw http.ResponseWriter, r *http.Request) {
	w := l.world(r)
	if w == nil {
		http.NotFound(rw, r)
		return
	}
	counts := []int64{}
	for _, n := range w.nodes {
		counts = append(counts, n.proxy.calls.Load())
	}
	answer(rw, counts)
}

func (l *lab) remove(rw http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	w := l.worlds[r.PathValue("world")]
	delete(l.worlds, r.PathValue("world"))
	l.mu.Unlock()
	if w != nil {
		w.close()
	}
	rw.WriteHeader(http.StatusNoContent)
}

// maxFreeze bounds a freeze, which may be that of the program that would otherwise end it.
const maxFreeze = 20_000

// freeze stops a process and lets it go on, as platforms do that run a program only while it has a request.
func freeze(rw http.ResponseWriter, r *http.Request) {
	pid, err1 := strconv.Atoi(r.FormValue("pid"))
	ms, err2 := strconv.Atoi(r.FormValue("ms"))
	if err1 != nil || err2 != nil || pid < 2 || ms < 1 || ms > maxFreeze {
		http.Error(rw, fmt.Sprintf("pid=%s for ms=%s is not possible", r.FormValue("pid"), r.FormValue("ms")), http.StatusBadRequest)
		return
	}
	err := syscall.Kill(pid, syscall.SIGSTOP)
	if err == nil {
		time.Sleep(time.Duration(ms) * time.Millisecond)
		err = syscall.Kill(pid, syscall.SIGCONT)
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	rw.WriteHeader(http.StatusNoContent)
}
