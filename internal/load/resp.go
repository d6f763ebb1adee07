package load

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/leaf-id/leaf/internal/issuer"
)

// A RESP is a target that speaks the Redis protocol, on one connection for each client.
type RESP struct {
	Server
	Scheme string
}

// Open implements [Target].
func (t *RESP) Open() Conn {
	c := &respConn{scheme: t.Scheme}
	c.wire = newWire(&t.Server, c.encodeCommand)
	c.login = c.auth
	return c
}

type respConn struct {
	wire
	scheme string
}

// auth tells a new connection's server the token.
func (c *respConn) auth() error {
	if c.Token == "" {
		return nil
	}
	if _, err := c.conn.Write(command("AUTH", c.Token)); err != nil {
		return err
	}
	return c.read(func([]byte) error { return nil })
}

// Do sends all calls in one write.
func (c *respConn) Do(ctx context.Context, calls []*Call) {
	if err := c.send(ctx, calls); err != nil {
		fail(calls, err)
		return
	}
	for at := 0; at < len(calls); at++ {
		if at += c.quick(calls[at:]); at == len(calls) {
			return
		}
		call := calls[at]
		call.Err = c.answer(call)
		if _, said := errors.AsType[*Failure](call.Err); call.Err != nil && !said {
			c.drop()
			fail(calls[at+1:], call.Err)
			return
		}
	}
}

// quick parses answers that have arrived whole and are plain integers, as nearly all are. It
// returns the number of answered calls.
func (c *respConn) quick(calls []*Call) (done int) {
	if !c.byIncrement() {
		return 0
	}
	text, _ := c.r.Peek(c.r.Buffered())
	at := 0
	for _, call := range calls {
		last, size := integer(text[at:])
		if size == 0 {
			break
		}
		at += size
		done++
		call.Err = call.IDs.addLast(last, call.Count)
	}
	_, _ = c.r.Discard(at) // it is in the buffer
	return done
}

// integer parses an answer with an ID; size 0: the answer is incomplete.
func integer(text []byte) (id int64, size int) {
	const longest = len(":9223372036854775807\r\n")
	end := bytes.IndexByte(text[:min(len(text), longest)], '\n')
	if end < 3 || text[0] != ':' || text[end-1] != '\r' {
		return 0, 0
	}
	id, err := parseID(text[1 : end-1])
	if err != nil {
		return 0, 0
	}
	return id, end + 1
}

func fail(calls []*Call, err error) {
	for _, call := range calls {
		call.Err = err
	}
}

// byIncrement reports whether the answer is the last of the IDs, as Redis answers.
func (c *respConn) byIncrement() bool { return c.scheme == issuer.Segment }

func (c *respConn) encodeCommand(call *Call) []byte {
	count := strconv.Itoa(call.Count)
	switch {
	case c.byIncrement() && call.Count == 1:
		return command("INCR", call.Key)
	case c.byIncrement():
		return command("INCRBY", call.Key, count)
	case call.Count == 1:
		return command("LEAF.NEXT", c.scheme, call.Key)
	}
	return command("LEAF.NEXT", c.scheme, call.Key, "COUNT", count)
}

func command(words ...string) []byte {
	text := fmt.Appendf(nil, "*%d\r\n", len(words))
	for _, w := range words {
		text = fmt.Appendf(text, "$%d\r\n%s\r\n", len(w), w)
	}
	return text
}

func (c *respConn) answer(call *Call) error {
	if !c.byIncrement() {
		return c.read(call.IDs.addText)
	}
	return c.read(func(text []byte) error {
		last, err := parseID(text)
		if err != nil {
			return failure(notIDs, clip(string(text)))
		}
		return call.IDs.addLast(last, call.Count)
	})
}

// read reads one reply, and calls add for each number or string in it. The first error of
// add is returned when all of the reply is read.
func (c *respConn) read(add func(text []byte) error) error {
	line, err := c.line()
	switch {
	case err != nil:
		return err
	case line[0] == '*':
		return c.array(line[1:], add)
	}
	return c.value(line, add)
}

// value parses anything but an array, beginning with line.
func (c *respConn) value(line []byte, add func([]byte) error) error {
	switch kind, rest := line[0], line[1:]; kind {
	case ':', '+':
		return add(rest)
	case '-':
		word, text, _ := bytes.Cut(rest, []byte{' '})
		return failure("Redis "+string(word), clip(string(text)))
	case '$':
		return c.bulk(rest, add)
	}
	return fmt.Errorf("%w: %q", errProtocol, clip(string(line)))
}

func (c *respConn) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return nil, fmt.Errorf("%w: %q", errProtocol, clip(string(line)))
	}
	return line[:len(line)-2], nil
}

func (c *respConn) bulk(size []byte, add func([]byte) error) error {
	n, err := strconv.Atoi(string(size))
	switch {
	case err != nil || n > bufferSize-2:
		return fmt.Errorf("%w: a string of %q bytes", errProtocol, clip(string(size)))
	case n < 0:
		return failure(notIDs, "null")
	}
	text, err := c.r.Peek(n + 2)
	if err != nil {
		return noEOF(err)
	}
	err = add(text[:n])
	_, _ = c.r.Discard(n + 2) // it is in the buffer
	return err
}

func (c *respConn) array(size []byte, add func([]byte) error) error {
	n, err := strconv.Atoi(string(size))
	if err != nil {
		return fmt.Errorf("%w: an array of %q", errProtocol, clip(string(size)))
	}
	var first error
	for range n {
		line, err := c.line()
		if err == nil {
			err = c.value(line, add)
		}
		if _, said := errors.AsType[*Failure](err); err != nil && !said {
			return noEOF(err)
		}
		first = cmp.Or(first, err)
	}
	return first
}

// noEOF is err within an answer.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
