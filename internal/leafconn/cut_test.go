package leafconn

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/leaf-id/leaf/worker"
)

// A proxy whose answers end with their connections is cut behind the headers: no call takes that
// for an empty answer.
func TestAnswerWithoutEnd(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go cutAnswer(conn)
		}
	}()
	c, err := Open([]string{"http://" + l.Addr().String()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for name, call := range map[string]func(context.Context) error{
		"Take":        func(ctx context.Context) error { _, err := c.Take(ctx, "segment", "order", 5); return err },
		"Advance":     func(ctx context.Context) error { _, err := Store{c}.Advance(ctx, "order", 5); return err },
		"Load":        func(ctx context.Context) error { _, err := Registry{c}.Load(ctx, 7); return err },
		"List":        func(ctx context.Context) error { _, err := Registry{c}.List(ctx); return err },
		"ServerEpoch": func(ctx context.Context) error { _, err := Registry{c}.ServerEpoch(ctx); return err },
		"Clock":       func(ctx context.Context) error { _, err := Registry{c}.Clock(ctx); return err },
		"Swap": func(ctx context.Context) error {
			_, err := Registry{c}.Swap(ctx, worker.Record{Worker: 7}, worker.Record{Worker: 7, Term: 1, Horizon: time.UnixMilli(5)})
			return err
		},
	} {
		if err := call(t.Context()); !errors.Is(err, errNoEnd) {
			t.Errorf("%s: got error %v, want %v", name, err, errNoEnd)
		}
	}
}

// cutAnswer reads a request and sends the headers of an answer.
func cutAnswer(conn net.Conn) {
	defer conn.Close()
	req, err := http.ReadRequest(bufio.NewReader(conn))
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, req.Body)
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/proto\r\nConnection: close\r\n\r\n")
}
