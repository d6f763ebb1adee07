package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/leaf-id/leaf/internal/load"
)

// maxWireIDs bounds the IDs of a tag that can be compared: a bit each, in memory that is used
// where there are any.
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

// verdict says how many IDs were compared, or that there were duplicates.
func (d *distinct) verdict() (string, error) {
	if d.twice.Load() > 0 || d.beyond.Load() > 0 {
		return "", fmt.Errorf("of %d IDs of all runs %d came twice, and %d could not be compared", d.count.Load(), d.twice.Load(), d.beyond.Load())
	}
	return fmt.Sprintf("\nAll %d IDs of these runs were compared with each other: no duplicate.\n", d.count.Load()), nil
}

func (d *distinct) add(ids *load.IDs) {
	for _, r := range ids.Ranges {
		for id := r.Start; id < r.End; id++ {
			if id >= maxWireIDs {
				d.beyond.Add(1)
				continue
			}
			bit := uint64(1) << (id % 64)
			if d.seen[id/64].Or(bit)&bit != 0 {
				d.twice.Add(1)
			}
		}
		d.count.Add(r.Len())
	}
}

type distinctTarget struct {
	load.Target
	all *distinct
}

func (t distinctTarget) Open() load.Conn { return distinctConn{t.Target.Open(), t.all} }

type distinctConn struct {
	load.Conn
	all *distinct
}

func (c distinctConn) Do(ctx context.Context, calls []*load.Call) {
	c.Conn.Do(ctx, calls)
	for _, call := range calls {
		if call.Err == nil {
			c.all.add(&call.IDs)
		}
	}
}
