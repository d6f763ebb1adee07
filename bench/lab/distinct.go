package main

import (
	"context"
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/leaf-id/leaf/internal/load"
)

// maxWireIDs bounds the compared IDs of a tag. Each takes a bit; unused pages take no memory.
const maxWireIDs = 1 << 30

// distinct compares the IDs of one tag of one server over all runs, whichever the protocol.
type distinct struct {
	seen          []atomic.Uint64
	count         atomic.Int64
	twice, beyond atomic.Int64
}

func newDistinct() *distinct { return &distinct{seen: make([]atomic.Uint64, maxWireIDs/64)} }

// of returns a target whose IDs are compared.
func (d *distinct) of(t load.Target) load.Target { return distinctTarget{t, d} }

// result reports the number of compared IDs, or duplicates.
func (d *distinct) result() (string, error) {
	if d.twice.Load() > 0 || d.beyond.Load() > 0 {
		return "", fmt.Errorf("of %d IDs of all runs %d came twice, and %d could not be compared", d.count.Load(), d.twice.Load(), d.beyond.Load())
	}
	return fmt.Sprintf("\nAll %d IDs of these runs were compared with each other: no duplicate.\n", d.count.Load()), nil
}

func (d *distinct) add(ids *load.IDs) {
	for _, r := range ids.Ranges {
		d.count.Add(r.Len())
		if within := max(r.Start, min(r.End, maxWireIDs)); within < r.End {
			d.beyond.Add(r.End - within)
			r.End = within
		}
		for r.Start < r.End {
			end := min(r.End, r.Start|63+1)
			mask := ^uint64(0) >> (64 - (end - r.Start)) << (r.Start % 64)
			if again := d.seen[r.Start/64].Or(mask) & mask; again != 0 {
				d.twice.Add(int64(bits.OnesCount64(again)))
			}
			r.Start = end
		}
	}
}

type distinctTarget struct {
	load.Target
	all *distinct
}

func (t distinctTarget) Open() load.Conn { return &distinctConn{Conn: t.Target.Open(), all: t.all} }

type distinctConn struct {
	load.Conn
	all *distinct
	ids load.IDs
}

func (c *distinctConn) Do(ctx context.Context, calls []*load.Call) {
	c.Conn.Do(ctx, calls)
	c.ids.Ranges = c.ids.Ranges[:0]
	for _, call := range calls {
		if call.Err == nil {
			c.ids.Join(&call.IDs)
		}
	}
	c.all.add(&c.ids)
}
