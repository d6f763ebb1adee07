package segment

import (
	"sync/atomic"

	"github.com/leaf-id/leaf"
)

// sealed is a cursor beyond the end of every span, far enough from the largest int64 that later adds
// cannot wrap it.
const sealed = 1 << 62

// A span is a granted range with a cursor. It serves once: a sealed span, or one with a successor,
// never serves again. Only a returned loan moves a cursor back: see "Lending" in the package's
// documentation.
type span struct {
	// What every call reads, and a call in a million writes.
	start int64
	size  int64
	quiet atomic.Int64 // while used is not above this, no caller looks at the stock
	from  *origin      // the grant that the span came from
	known int64        // the mark of the guard before that grant: nothing above was issued

	_    [cacheLine - 40]byte
	used atomic.Int64 // IDs reserved from the front; size or more: drained
	_    [cacheLine - 8]byte
}

// An origin is a grant to a stock, without a period and hidden numbers. A stock may have very many.
type origin struct {
	numbers                        leaf.Range
	step                           int64
	source, server, store, version string
	guarded                        bool
}

func originOf(g Grant) *origin {
	return &origin{g.Range, g.Step, g.Source, g.Server, g.Store, g.Version, g.Guarded}
}

func (o *origin) grant() Grant {
	return Grant{Range: o.numbers, Step: o.step, Source: o.source, Server: o.server, Store: o.store, Version: o.version, Guarded: o.guarded}
}

// cacheLine is the unit of transfer between the cores of a machine.
const cacheLine = 64

// noIDs is the drained span that every buffer begins with.
var noIDs = newSpan(Grant{})

func newSpan(grant Grant) *span {
	return spanOf(grant.Range, originOf(grant))
}

// spanOf's first look at the stock is due when 10 % are used, Leaf's rule, and
// at the latest with the last ID.
func spanOf(part leaf.Range, from *origin) *span {
	s := &span{start: part.Start, size: part.Len(), from: from}
	s.quiet.Store(max(0, min(s.size/10+1, s.size-1)))
	return s
}

// cut returns a span of a part of s, which serves no more.
func (s *span) cut(part leaf.Range) *span {
	c := spanOf(part, s.from)
	c.known = s.known
	return c
}

// reserve takes up to n IDs off the front; empty when s is drained.
func (s *span) reserve(n int64) leaf.Range {
	if s.used.Load() >= s.size { // keeps late callers from pushing the cursor on
		return leaf.Range{}
	}
	return s.take(n)
}

func (s *span) take(n int64) leaf.Range {
	end := s.used.Add(n)
	if end-n >= s.size { // others were first; the sums below might not even fit
		return leaf.Range{}
	}
	return leaf.Range{Start: s.start + end - n, End: s.start + min(end, s.size)}
}

// reserveAtLeast takes up to n IDs off the front; empty when s has fewer than least, which is not 0.
// Unlike after reserve, the cursor is then at the end of the range.
func (s *span) reserveAtLeast(least, n int64) leaf.Range {
	for {
		used := s.used.Load()
		end := min(s.size, used+n)
		if end-used < least {
			return leaf.Range{}
		}
		if s.used.CompareAndSwap(used, end) {
			return leaf.Range{Start: s.start + used, End: s.start + end}
		}
	}
}

// due reports whether it falls to the caller, who reserved up to used, to look at
// the stock: one caller for each tenth of the span, and near its end for each half of the rest,
// as a span may be much larger than the stock has to be.
func (s *span) due(used int64) bool {
	quiet := s.quiet.Load()
	next := min(s.size, used+max(1, min(s.size/10, (s.size-used)/2)))
	return used > quiet && s.quiet.CompareAndSwap(quiet, next)
}

// seal drains s and returns its unreserved rest.
func (s *span) seal() leaf.Range {
	used := min(s.used.Swap(sealed), s.size)
	return leaf.Range{Start: s.start + used, End: s.start + s.size}
}

func (s *span) issued() int64    { return min(s.used.Load(), s.size) }
func (s *span) remaining() int64 { return s.size - s.issued() }
