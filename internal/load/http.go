package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// An HTTP is a target for HTTP/1.1, with one connection for each client. It writes prepared bytes:
// a client of package net/http needs several times the server's time for a request.
type HTTP struct {
	Server

	// Path returns the path and query that ask for count IDs of key.
	Path func(key string, count int) string

	read func(body []byte, ids *IDs) error
}

// Routes returns the target of Java Leaf's routes, /api/{scheme}/get/{key}.
func Routes(server Server, scheme string) *HTTP {
	return &HTTP{
		Server: server,
		Path: func(key string, count int) string {
			path := "/api/" + scheme + "/get/" + url.PathEscape(key)
			if count > 1 {
				path += "?n=" + strconv.Itoa(count)
			}
			return path
		},
		read: func(body []byte, ids *IDs) error { return ids.addLines(body) },
	}
}

// explain returns the message in an error: of Java Leaf's routes, where it prefers this server's own
// words, or of RFC 9457.
func explain(body []byte) string {
	var said struct{ Message, Detail string }
	if json.Unmarshal(body, &said) != nil {
		return string(body)
	}
	return cmp.Or(said.Detail, said.Message)
}

// Open implements [Target].
func (t *HTTP) Open() Conn {
	c := &httpConn{target: t}
	c.wire = newWire(&t.Server, c.encodeGet)
	c.protocol = "http/1.1"
	return c
}

type httpConn struct {
	target *HTTP
	wire
	body bytes.Buffer
}

// get is what [http.ReadResponse] has to know of each request.
var get = &http.Request{Method: http.MethodGet}

// maxBody bounds the read part of an answer: a million IDs, one a line.
const maxBody = 1 << 26

// Do sends all calls in one write.
func (c *httpConn) Do(ctx context.Context, calls []*Call) {
	if err := c.send(ctx, calls); err != nil {
		fail(calls, err)
		return
	}
	for i, call := range calls {
		if call.Err = c.answer(call); c.conn == nil {
			fail(calls[i+1:], errClosed)
			return
		}
	}
}

// errClosed is the error of calls behind the last answer of a connection.
var errClosed = fmt.Errorf("the server answered no further request on the connection: %w", io.EOF)

// answer reads the answer to a call. It drops a connection that brings no further one.
func (c *httpConn) answer(call *Call) error {
	status, err := c.read()
	switch {
	case err != nil:
		c.drop()
		return err
	case status != http.StatusOK:
		return failure("HTTP "+strconv.Itoa(status), clip(explain(c.body.Bytes())))
	}
	return c.target.read(c.body.Bytes(), &call.IDs)
}

func (c *httpConn) encodeGet(call *Call) []byte {
	text := fmt.Appendf(nil, "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: leaf-bench\r\n", c.target.Path(call.Key, call.Count), c.Addr)
	if c.Token != "" {
		text = fmt.Appendf(text, "Authorization: Bearer %s\r\n", c.Token)
	}
	return append(text, "\r\n"...)
}

// read reads an answer, whose body is in c.body then.
func (c *httpConn) read() (status int, err error) {
	if status, ok := c.quick(); ok {
		return status, nil
	}
	res, err := http.ReadResponse(c.r, get)
	if err != nil {
		return 0, c.malformed(err)
	}
	c.body.Reset()
	if _, err := c.body.ReadFrom(io.LimitReader(res.Body, maxBody)); err != nil {
		return 0, err
	}
	if c.body.Len() == maxBody {
		return 0, errors.New("the answer is too large")
	}
	if res.Close {
		c.drop()
	}
	return res.StatusCode, nil
}

// malformed returns the error of an answer that package net/http cannot read. Where the connection
// has ended, or the time is over, the answer may only be cut short: the package takes the first half
// of a line for all of it.
func (c *httpConn) malformed(err error) error {
	if kind, _ := kindOf(err); kind != kindOther {
		return err
	}
	if !time.Now().Before(c.deadline) {
		return fmt.Errorf("%w: %w", os.ErrDeadlineExceeded, err)
	}
	if _, ended := c.r.Peek(1); ended != nil && !errors.Is(ended, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", noEOF(ended), err)
	}
	return fmt.Errorf("%w: %w", errProtocol, err)
}

// clip shortens a server's message to a printable line.
func clip(text string) string {
	const longest = 200
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
