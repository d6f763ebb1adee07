package respapi

import (
	"strconv"
	"strings"

	"github.com/leaf-id/leaf"
)

// A reply collects the server's next output on a connection, in its version of the protocol.
type reply struct {
	buf   []byte
	resp3 bool
}

func (r *reply) line(kind byte, text string) {
	r.buf = append(r.buf, kind)
	r.buf = append(r.buf, text...)
	r.buf = append(r.buf, '\r', '\n')
}

func (r *reply) header(kind byte, n int64) {
	r.buf = append(r.buf, kind)
	r.buf = strconv.AppendInt(r.buf, n, 10)
	r.buf = append(r.buf, '\r', '\n')
}

// ok is the reply to a command without a result.
func (r *reply) ok() { r.line('+', "OK") }

func (r *reply) simple(text string) { r.line('+', text) }

func (r *reply) integer(n int64) { r.header(':', n) }

// integers replies with the numbers of ids, one after the other. Ten of them differ in their last
// digit alone.
func (r *reply) integers(ids leaf.Range) {
	for id := ids.Start; id < ids.End; {
		from := len(r.buf)
		r.integer(id)
		to := len(r.buf)
		for digit := id%10 + 1; digit < 10 && id+1 < ids.End; digit++ {
			id++
			r.buf = append(r.buf, r.buf[from:to]...)
			r.buf[len(r.buf)-len("0\r\n")] = '0' + byte(digit)
		}
		id++
	}
}

// oneLine keeps a text from ending its line.
var oneLine = strings.NewReplacer("\r", " ", "\n", " ")

// fail replies with an error; its first word is what clients go by.
func (r *reply) fail(text string) { r.line('-', oneLine.Replace(text)) }

func (r *reply) bulk(text string) {
	r.header('$', int64(len(text)))
	r.buf = append(r.buf, text...)
	r.buf = append(r.buf, '\r', '\n')
}

// array announces n replies.
func (r *reply) array(n int) { r.header('*', int64(n)) }

// mapping announces n pairs of replies; in RESP2 they are an array.
func (r *reply) mapping(n int) {
	if r.resp3 {
		r.header('%', int64(n))
		return
	}
	r.array(2 * n)
}

// members announces n replies without order; in RESP2 they are an array.
func (r *reply) members(n int) {
	if r.resp3 {
		r.header('~', int64(n))
		return
	}
	r.array(n)
}

func (r *reply) null() {
	if r.resp3 {
		r.buf = append(r.buf, "_\r\n"...)
		return
	}
	r.buf = append(r.buf, "$-1\r\n"...)
}

// nullArray is null where an array was expected.
func (r *reply) nullArray() {
	if r.resp3 {
		r.null()
		return
	}
	r.buf = append(r.buf, "*-1\r\n"...)
}

// text replies with a text that people read as it is.
func (r *reply) text(text string) {
	if r.resp3 {
		r.bulkAs("txt", text)
		return
	}
	r.bulk(text)
}

func (r *reply) bulkAs(format, text string) {
	r.header('=', int64(len(text)+len(format)+1))
	r.buf = append(r.buf, format...)
	r.buf = append(r.buf, ':')
	r.buf = append(r.buf, text...)
	r.buf = append(r.buf, '\r', '\n')
}
