package frontend

import (
	"net/http"
	"strconv"
	"sync"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/issuer"
)

const (
	piece   = 4096 // bytes of one write
	longest = 96   // upper bound for an ID, or range, with its separators

	longestNumber = 20
)

// WriteIDs answers r with the IDs.
func (o *Options) WriteIDs(w http.ResponseWriter, r *http.Request, ids issuer.IDs, before, between, after string) {
	if ids.Texts.Len() == 0 {
		setLength(w, len(before)+runsSize(ids.Ranges, len(between))+len(after))
	}
	p := o.newPieces(w, r, before)
	defer p.release()
	separator := ""
	for _, run := range ids.Ranges {
		for !run.Empty() {
			if !p.room() {
				return
			}
			part := run
			part.End = run.Start + 1 // the first ID is without the separator
			if separator != "" {
				part.End = min(run.End, run.Start+p.runs(len(between)))
			}
			p.buf = AppendRun(p.buf, part, separator)
			run.Start, separator = part.End, between
		}
	}
	for id := range (issuer.IDs{Texts: ids.Texts}).All() {
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
	setLength(w, RangesSize(ranges)-len(rangesAfter)+len(after))
	p := o.newPieces(w, r, rangesBefore)
	defer p.release()
	for i, r := range ranges {
		if !p.room() {
			return
		}
		if i > 0 {
			p.buf = append(p.buf, ',')
		}
		p.buf = appendRange(p.buf, r)
	}
	p.end(after)
}

func setLength(w http.ResponseWriter, n int) {
	w.Header()["Content-Length"] = []string{strconv.Itoa(n)}
}

// A pieces writes an answer in pieces, so that memory does not grow with its size. All but the
// first are made in turn. They are written outside of turns, since a client may take its time to
// read.
type pieces struct {
	w     http.ResponseWriter
	r     *http.Request
	turns BatchLimiter
	turn  bool // it is this answer's

	memory *[piece]byte
	buf    []byte // of memory
}

// buffers are for answers in the making.
var buffers = sync.Pool{New: func() any { return new([piece]byte) }}

func (o *Options) newPieces(w http.ResponseWriter, r *http.Request, before string) *pieces {
	memory := buffers.Get().(*[piece]byte)
	return &pieces{w: w, r: r, turns: o.Batches, memory: memory, buf: append(memory[:0], before...)}
}

// release ends the turn and gives the buffer back.
func (p *pieces) release() {
	p.endTurn()
	buffers.Put(p.memory)
}

// runs is how many numbers with their separators fit into the piece.
func (p *pieces) runs(separator int) int64 {
	return int64((piece - len(p.buf)) / (longestNumber + separator))
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
