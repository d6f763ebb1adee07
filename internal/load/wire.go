package load

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// A Server is where a target is, and how it is reached.
type Server struct {
	Addr    string      // host:port
	TLS     *tls.Config // nil: plain text
	Token   string      // may be empty
	Timeout time.Duration
}

// A wire is a connection that one client writes requests to and reads answers from. It
// connects when it is needed.
type wire struct {
	*Server
	encode   func(*Call) []byte // returns the bytes of a request
	protocol string             // told to the server in the TLS handshake; may be empty
	login    func() error       // on a new connection; may be nil

	requests map[request][]byte
	last     request // most calls repeat it
	text     []byte  // of last
	out      []byte

	conn     net.Conn
	r        *bufio.Reader
	release  func() bool // ends the watch over the context
	deadline time.Time   // the last one set
}

// A request is one kind of request. All requests of this kind on a connection are the same bytes.
type request struct {
	key   string
	count int
}

func newWire(server *Server, encode func(*Call) []byte) wire {
	return wire{Server: server, encode: encode, requests: map[request][]byte{}}
}

func (w *wire) send(ctx context.Context, calls []*Call) error {
	if err := w.ready(ctx); err != nil {
		return err
	}
	w.out = w.out[:0]
	for _, call := range calls {
		w.out = append(w.out, w.request(call)...)
	}
	if _, err := w.conn.Write(w.out); err != nil {
		w.drop()
		return err
	}
	return nil
}

func (w *wire) request(call *Call) []byte {
	if want := (request{call.Key, call.Count}); w.text == nil || want != w.last {
		w.last, w.text = want, w.requests[want]
		if w.text == nil {
			w.text = w.encode(call)
			w.requests[want] = w.text
		}
	}
	return w.text
}

// bufferSize holds the answers to a pipeline, or a batch of some hundred IDs.
const bufferSize = 1 << 14

// ready connects if necessary, and sets the time-out of the next answers. It keeps a recent
// time-out: to set one costs as much as to read several answers.
func (w *wire) ready(ctx context.Context) error {
	if w.conn == nil {
		if err := w.connect(ctx); err != nil {
			return fmt.Errorf("%w: %w", errConnect, err)
		}
		w.deadline = time.Time{}
	}
	now := time.Now()
	if w.deadline.Sub(now) > w.Timeout-w.Timeout/128 {
		return nil
	}
	w.deadline = now.Add(w.Timeout)
	return w.conn.SetDeadline(w.deadline)
}

func (w *wire) connect(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, w.Timeout)
	defer cancel()
	conn, err := w.dial(limited)
	if err != nil {
		return err
	}
	w.conn, w.r = conn, bufio.NewReaderSize(conn, bufferSize)
	w.release = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if w.login == nil {
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(w.Timeout)) // a closed connection is noticed next
	if err := w.login(); err != nil {
		w.drop()
		return err
	}
	return nil
}

func (w *wire) dial(ctx context.Context) (net.Conn, error) {
	var d net.Dialer
	if w.TLS == nil {
		return d.DialContext(ctx, "tcp", w.Addr)
	}
	config := w.TLS.Clone()
	if w.protocol != "" {
		config.NextProtos = []string{w.protocol}
	}
	return (&tls.Dialer{NetDialer: &d, Config: config}).DialContext(ctx, "tcp", w.Addr)
}

func (w *wire) drop() {
	if w.conn == nil {
		return
	}
	w.release()
	_ = w.conn.Close()
	w.conn, w.r = nil, nil
}

func (w *wire) Close() error {
	w.drop()
	return nil
}
