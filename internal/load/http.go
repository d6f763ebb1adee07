package load

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// An HTTP is a target for HTTP/1.1, with one connection for each client. It writes prepared bytes:
// a client of package net/http needs several times the server's time for a request.
type HTTP struct {
	Server

	// Path returns the path and query that ask for count IDs of key.
	Path func(key string, count int) string

	// Header holds further header fields, "Name: value".
	Header []string

	// Read reads the IDs of an answer.
	Read func(body []byte, ids *IDs) error

	// Explain returns the message in an error's answer.
	Explain func(body []byte) string
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
		Read:    func(body []byte, ids *IDs) error { return ids.addLines(body) },
		Explain: explainRoute,
	}
}

// explainRoute returns the message in an error of Java Leaf's routes: this server's own words, if
// any.
func explainRoute(body []byte) string {
	var said struct{ Message, Detail string }
	if json.Unmarshal(body, &said) != nil {
		return string(body)
	}
	return cmp.Or(said.Detail, said.Message)
}

// Open implements [Target].
func (t *HTTP) Open() Conn {
	return &httpConn{target: t, wire: wire{Server: &t.Server, protocol: "http/1.1"}, requests: map[request][]byte{}}
}

// A request is one kind of request. All requests of this kind on a connection are the same bytes.
type request struct {
	key   string
	count int
}

type httpConn struct {
	target *HTTP
	wire
	requests map[request][]byte
	body     bytes.Buffer
}

// get is what [http.ReadResponse] has to know of each request.
var get = &http.Request{Method: http.MethodGet}

// maxBody bounds the read part of an answer: a million IDs, one a line.
const maxBody = 1 << 26

// Do makes the calls one after another.
func (c *httpConn) Do(ctx context.Context, calls []*Call) {
	for _, call := range calls {
		call.Err = c.do(ctx, call)
	}
}

func (c *httpConn) do(ctx context.Context, call *Call) error {
	if err := c.ready(ctx); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request(call)); err != nil {
		c.drop()
		return err
	}
	status, err := c.answer()
	switch {
	case err != nil:
		c.drop()
		return err
	case status != http.StatusOK:
		return failure("HTTP "+strconv.Itoa(status), clip(c.target.Explain(c.body.Bytes())))
	}
	return c.target.Read(c.body.Bytes(), &call.IDs)
}

func (c *httpConn) request(call *Call) []byte {
	text := c.requests[request{call.Key, call.Count}]
	if text == nil {
		lines := append([]string{
			"GET " + c.target.Path(call.Key, call.Count) + " HTTP/1.1",
			"Host: " + c.Addr,
			"User-Agent: leaf-bench",
		}, c.target.Header...)
		if c.Token != "" {
			lines = append(lines, "Authorization: Bearer "+c.Token)
		}
		text = []byte(strings.Join(lines, "\r\n") + "\r\n\r\n")
		c.requests[request{call.Key, call.Count}] = text
	}
	return text
}

// answer reads an answer, whose body is in c.body then.
func (c *httpConn) answer() (status int, err error) {
	if status, ok := c.quick(); ok {
		return status, nil
	}
	res, err := http.ReadResponse(c.r, get)
	if err != nil {
		return 0, err
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

// clip shortens a server's message to a printable line.
func clip(text string) string {
	const longest = 200
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}
