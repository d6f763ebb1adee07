package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"
)

// A javaServer answers as a server of Java Leaf does, on the same rows and the same tree:
// its port opens when it has its worker ID, and requests under way are cut when it stops.
type javaServer struct {
	http *http.Server

	mu       sync.Mutex
	node     *javaNode
	segment  *javaLeaf
	next     int64 // of the segment in memory
	end      int64
	answered int
}

// startJavaServer starts one on a port of this machine, with that port in its name in the
// tree.
func startJavaServer(t testing.TB, tr *tree, database string, port int) *javaServer {
	t.Helper()
	j := &javaServer{
		node:    startJavaNode(t, tr, ourIP, fmt.Sprint(port), nil),
		segment: &javaLeaf{db: openDB(t, database), tag: sampleTag},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/segment/get/{key}", j.answer(j.nextOfSegment))
	mux.HandleFunc("/api/snowflake/get/{key}", j.answer(func(context.Context) (int64, error) { return j.node.next().Start, nil }))
	j.http = &http.Server{Handler: mux}
	var listener net.Listener
	until(t, 5*time.Second, "listening", func() (err error) {
		listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		return err
	})
	go func() {
		if err := j.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	t.Cleanup(j.stop)
	return j
}

func (j *javaServer) stop() {
	_ = j.http.Close()
	j.node.stop()
}

// nextOfSegment is Java Leaf's without its prefetch.
func (j *javaServer) nextOfSegment(ctx context.Context) (id int64, err error) {
	if j.next == j.end {
		if j.next, j.end, err = j.segment.load(ctx); err != nil {
			return 0, err
		}
	}
	j.next++
	return j.next - 1, nil
}

func (j *javaServer) answer(next func(context.Context) (int64, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		j.mu.Lock()
		defer j.mu.Unlock()
		id, err := next(context.WithoutCancel(r.Context()))
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		j.answered++
		fmt.Fprint(w, id)
	}
}

func (j *javaServer) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.answered
}
