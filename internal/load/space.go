package load

import (
	"fmt"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/google/uuid"

	"github.com/leaf-id/leaf"
)

// A space keeps the IDs of one ID space. Numbers are in bitmaps by their upper 32 bits: IDs mostly
// ascend, so only the latest few bitmaps change.
type space struct {
	name   string
	parts  map[uint32]*part
	uuids  map[uuid.UUID]struct{}
	memory int64 // in use, about
	dirty  []*part
	added  int64 // since memory was last compressed and counted
}

// A part holds numbers with common upper 32 bits.
type part struct {
	bits   *roaring.Bitmap
	memory int64
	dirty  bool
}

const partSize = 1 << 32

// Approximate overhead in bytes, as BenchmarkMemory shows.
const (
	partMemory      = 300
	containerMemory = 64
	uuidMemory      = 40
)

// compressAfter is how many numbers may be added before memory is compressed and counted
// again. A new part counts as several.
const (
	compressAfter = 1 << 20
	partWeight    = 16
)

func newSpace(name string) *space {
	return &space{name: name, parts: map[uint32]*part{}, uuids: map[uuid.UUID]struct{}{}}
}

// numbers compares ranges with all kept ones and with each other, and keeps them on request.
func (s *space) numbers(ranges []leaf.Range, keep bool, check *Check) {
	for high, given := range byPart(ranges) {
		bits := roaring.New()
		for _, r := range given {
			addTo(bits, r)
		}
		s.compare(high, given, bits, check)
		if keep {
			s.keep(high, bits)
		}
	}
	if s.added >= compressAfter {
		s.compress()
	}
}

// byPart splits ranges by the parts that they belong to, each with its numbers' lower 32 bits.
func byPart(ranges []leaf.Range) map[uint32][]leaf.Range {
	split := map[uint32][]leaf.Range{}
	var high uint32
	var run []leaf.Range // those of high
	for _, r := range ranges {
		for start := r.Start; start < r.End; {
			base := start / partSize * partSize
			if h := uint32(start / partSize); h != high {
				put(split, high, run)
				high, run = h, split[h]
			}
			end := start + min(r.End-start, base-start+partSize) // base + partSize may be no int64
			run = append(run, leaf.Range{Start: start - base, End: end - base})
			start = end
		}
	}
	put(split, high, run)
	return split
}

func put(split map[uint32][]leaf.Range, high uint32, run []leaf.Range) {
	if len(run) > 0 {
		split[high] = run
	}
}

// addTo adds a range of lower 32 bits.
func addTo(bits *roaring.Bitmap, r leaf.Range) {
	const short = 16 // a range this long has its price
	if r.Len() > short {
		bits.AddRange(uint64(r.Start), uint64(r.End))
		return
	}
	for n := r.Start; n < r.End; n++ {
		bits.Add(uint32(n))
	}
}

// compare counts the numbers among given (bits together) that came before, and names the first.
func (s *space) compare(high uint32, given []leaf.Range, bits *roaring.Bitmap, check *Check) {
	total := int64(0)
	for _, r := range given {
		total += r.Len()
	}
	again := total - int64(bits.GetCardinality())
	if again > 0 {
		s.nameRepeated(high, given, check)
	}
	if p := s.parts[high]; p != nil {
		if both := p.bits.AndCardinality(bits); both > 0 {
			again += int64(both)
			s.nameKnown(high, roaring.And(p.bits, bits), check)
		}
	}
	check.Duplicates += again
}

// nameRepeated names numbers in more than one of the ranges.
func (s *space) nameRepeated(high uint32, given []leaf.Range, check *Check) {
	seen := roaring.New()
	for _, r := range given {
		for n := r.Start; n < r.End && len(check.Examples) < exampleCount; n++ {
			if !seen.CheckedAdd(uint32(n)) {
				s.example(high, uint32(n), check)
			}
		}
	}
}

func (s *space) nameKnown(high uint32, known *roaring.Bitmap, check *Check) {
	for it := known.Iterator(); it.HasNext() && len(check.Examples) < exampleCount; {
		s.example(high, it.Next(), check)
	}
}

func (s *space) example(high, low uint32, check *Check) {
	check.Examples = append(check.Examples, fmt.Sprintf("%d of %s", int64(high)*partSize+int64(low), s.name))
}

func (s *space) keep(high uint32, bits *roaring.Bitmap) {
	s.added += int64(bits.GetCardinality())
	p := s.parts[high]
	if p == nil {
		p = &part{bits: bits}
		s.parts[high] = p
		s.added += partWeight
	} else {
		p.bits.Or(bits)
	}
	if !p.dirty {
		p.dirty = true
		s.dirty = append(s.dirty, p)
	}
}

// compress makes runs of consecutive numbers small, and counts the memory in use.
func (s *space) compress() {
	for _, p := range s.dirty {
		p.bits.RunOptimize()
		stats := p.bits.Stats()
		now := int64(partMemory + stats.Containers*containerMemory + stats.ArrayContainerBytes + stats.BitmapContainerBytes + stats.RunContainerBytes)
		s.memory += now - p.memory
		p.memory, p.dirty = now, false
	}
	s.dirty, s.added = s.dirty[:0], 0
}

// texts does for UUIDs what numbers does for numbers.
func (s *space) texts(ids []uuid.UUID, keep bool, check *Check) {
	for _, id := range ids {
		if _, known := s.uuids[id]; known {
			check.Duplicates++
			if len(check.Examples) < exampleCount {
				check.Examples = append(check.Examples, fmt.Sprintf("%s of %s", id, s.name))
			}
			continue
		}
		if keep {
			s.uuids[id] = struct{}{}
			s.memory += uuidMemory
		}
	}
}
