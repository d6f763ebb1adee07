package load

import (
	"bufio"
	"net"
	"strconv"
	"testing"
	"time"
)

// An echo answers each command with the next ID.
type echo struct {
	net.Conn
	pipeline int
	next     int64
}

func (e *echo) SetDeadline(time.Time) error { return nil }
func (e *echo) Write(p []byte) (int, error) { return len(p), nil }
func (e *echo) Close() error                { return nil }
func (e *echo) Read(p []byte) (int, error) {
	text := p[:0]
	for range e.pipeline {
		e.next++
		text = append(strconv.AppendInt(append(text, ':'), e.next, 10), '\r', '\n')
	}
	return len(text), nil
}

// BenchmarkRESP measures the generator's cost of a command in a pipeline, without system calls.
func BenchmarkRESP(b *testing.B) {
	const pipeline = 64
	target := &RESP{Server: Server{Timeout: time.Minute}, Scheme: "segment"}
	r := newRun(Options{Target: target, Keys: []Key{{"order", "order"}}, Count: 1, Clients: 1, Pipeline: pipeline, Memory: 1 << 30})
	c := r.newClient(0)
	wire := &c.conn.(*respConn).wire
	wire.conn = &echo{pipeline: pipeline, next: 1e7}
	wire.r, wire.release = bufio.NewReaderSize(wire.conn, bufferSize), func() bool { return true }
	r.start = time.Now()
	for b.Loop() {
		c.prepare()
		Do(b.Context(), c.conn, c.calls)
		c.note(0, c.elapsed())
		c.keep()
	}
	b.StopTimer()
	c.feed.flush()
	if check := r.checker.close(); check.Duplicates > 0 || check.Checked != int64(b.N*pipeline) {
		b.Errorf("%+v", check)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*pipeline), "ns/command")
}
