package load

import (
	"bytes"
	"strconv"
)

// quick parses an answer that has arrived whole and has a length, as nearly all do; package
// net/http would make a map of its header. For any other answer ok is false, and quick reads
// nothing.
func (c *httpConn) quick() (status int, ok bool) {
	if _, err := c.r.Peek(1); err != nil {
		return 0, false
	}
	text, _ := c.r.Peek(c.r.Buffered())
	head, body, whole := bytes.Cut(text, []byte("\r\n\r\n"))
	status, size, plain := plainHead(head)
	if !whole || !plain || size > len(body) {
		return 0, false
	}
	c.body.Reset()
	c.body.Write(body[:size])
	_, _ = c.r.Discard(len(head) + 4 + size) // it is in the buffer
	return status, true
}

// plainHead parses the head of an HTTP/1.1 answer with a body of known length on a connection that
// stays open.
func plainHead(head []byte) (status, size int, ok bool) {
	line, fields, _ := bytes.Cut(head, []byte("\r\n"))
	code, found := bytes.CutPrefix(line, []byte("HTTP/1.1 "))
	if !found || len(code) < 4 || code[3] != ' ' {
		return 0, 0, false
	}
	status, err := strconv.Atoi(string(code[:3]))
	if err != nil || status < 200 || status == 204 || status == 304 { // the others have no body
		return 0, 0, false
	}
	size = -1
	for len(fields) > 0 {
		line, fields, _ = bytes.Cut(fields, []byte("\r\n"))
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			n, err := strconv.ParseUint(string(bytes.TrimSpace(value)), 10, 31)
			if err != nil || size >= 0 {
				return 0, 0, false
			}
			size = int(n)
		case bytes.EqualFold(name, []byte("Transfer-Encoding")), bytes.EqualFold(name, []byte("Connection")):
			return 0, 0, false
		}
	}
	return status, size, size >= 0
}
