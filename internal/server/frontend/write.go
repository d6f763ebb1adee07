package frontend

import (
	"net/http"
	"strconv"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
)

const (
	piece   = 4096 // bytes of one write
	longest = 96   // upper bound for an ID, or range, with its separators
)

// WriteIDs answers r with the IDs.
func (o *Options) WriteIDs(w http.ResponseWriter, r *http.Request, ids issuer.IDs, before, between, after string) {
	p := o.newPieces(w, r, before)
	defer p.endTurn()
	separator := ""
	for id := range ids.All() {
		if !p.room() {
			return
		}
		p.buf = id.Append(append(p.buf, separator...))
		separator = between
	}
	p.end(after)
}

// WriteRanges answers r with ranges as JSON, whose rest is after.
func (o *Options) WriteRanges(w http.ResponseWriter, r *http.Request, ranges []leaf.Range, after string) {
	p := o.newPieces(w, r, `{"ranges":[`)
	defer p.endTurn()
	for i, r := range ranges {
		if !p.room() {
			return
		}
		if i > 0 {
			p.buf = append(p.buf, ',')
		}
		p.buf = strconv.AppendInt(append(p.buf, `{"start":"`...), r.Start, 10)
		p.buf = strconv.AppendInt(append(p.buf, `","count":"`...), r.Len(), 10)
		p.buf = append(p.buf, `"}`...)
	}
	p.end(after)
}

// A pieces writes an answer in pieces, so that memory does not grow with its size. All but the
// first are made in turn. They are written outside of turns, since a client may take its time to
// read.
type pieces struct {
	w     http.ResponseWriter
	r     *http.Request
	turns BatchLimiter
	turn  bool // it is this answer's
	buf   []byte
}

func (o *Options) newPieces(w http.ResponseWriter, r *http.Request, before string) *pieces {
	return &pieces{w: w, r: r, turns: o.Batches, buf: append(make([]byte, 0, piece), before...)}
}

// room makes room for an ID or a range; false: the client has gone.
func (p *pieces) room() bool {
	if len(p.buf) <= piece-longest {
		return true
	}
	if !p.write() {
		return false
	}
	p.turn = p.turns != nil && p.turns.begin(p.r.Context()) // at a stop the rest is written without
	return true
}

func (p *pieces) write() bool {
	p.endTurn()
	_, err := p.w.Write(p.buf)
	p.buf = p.buf[:0]
	return err == nil
}

func (p *pieces) endTurn() {
	if p.turn {
		p.turn = false
		p.turns.end()
	}
}

// end writes the rest. The IDs are used up, even if they do not arrive.
func (p *pieces) end(after string) {
	p.buf = append(p.buf, after...)
	p.write()
}
