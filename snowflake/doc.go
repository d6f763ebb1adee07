// Package snowflake makes IDs from the time, a worker ID and a sequence number.
//
// A [Layout] says how many bits each of them has. A [Generator] issues IDs under a
// lease of a worker ID, which a [worker.Keeper] claims and extends:
//
//	layout, _ := snowflake.Preset("leaf")
//	ids, _ := snowflake.New(layout, nil)
//	keeper, err := worker.NewKeeper(registry, &worker.Options{
//		Layouts:    []worker.ServedLayout{layout.Record("leaf")},
//		LeaseUsers: []worker.LeaseUser{ids},
//	})
//	go keeper.Run(ctx)
//	id, err := ids.Next(ctx)
//
// # What always holds
//
//  1. An ID is issued only in a tick that lies wholly between the floor and the limit
//     of the lease of its worker ID. As no two leases of one worker ID share a time, no
//     ID is issued twice, whatever any clock does.
//  2. The IDs that a generator issues one after the other increase, also over a change
//     of the worker ID: the new one begins in a later tick.
//  3. A tick begins at most [Options.MaxAhead] after the time on the clock when an ID
//     is issued in it.
//  4. A call waits for nothing but the clock and the lease, and at most for
//     [Options.Wait].
//  5. The sign bit is never set.
//
// # The protocol
//
// A slot is tick<<sequenceBits | sequence. A lane is one lease together with a cursor,
// the next slot that nobody has reserved, behind one atomic pointer: a slot that was
// reserved under one worker ID cannot be composed with another. The cursor only
// grows, by one atomic add for an ID. When the sequence of a tick is used up, the add
// by itself goes on in the next tick; the clock does no more than to pull the cursor
// up to the present tick if it is behind. So a clock that steps back, or stands still,
// costs nothing but time borrowed from the future.
//
// The limit of a lane is the first slot that may not be issued: the least of the
// lease's limit rounded down to a tick, the end of the tick that is MaxAhead beyond
// the clock, and the end of the layout. It only grows, so that a check that was
// passed stays passed. Callers see it as the gate. A caller who reserves the last slot
// below the gate shuts it, and while it is shut nobody adds. A caller who
// was between the look at the gate and the add by then may reserve beyond it: that
// slot is lost, and there can be no more of them than there are such callers, as the
// gate opens only when the cursor is below the limit.
//
// Callers who find the gate shut stand in line. They sleep; slots are handed to them
// in the order in which they came as the limit grows, and the gate opens when nobody is
// left in line. A call that cannot be served in time, by the clock and by what others
// in line wait for, is refused at once and reserves nothing.
//
// Sealing swaps the cursor to a value beyond every limit. A caller who reserved
// before the swap owns the slot and may take any time to return it. A caller who adds
// after it gets a value beyond the gate, however long ago it loaded lane and gate:
// swapping the pointer alone would not do that. What the swap returns is
// exact, and gives the tick after the last one reserved. Callers in line stay there
// and go on with the next lane, if one begins in time.
//
// # The clock
//
// Calls do not read the clock. A timer does, each millisecond or, for longer ticks,
// up to each 10 ms: it pulls the cursor up, raises the limit and serves the line. A
// tick that is entered by pulling begins at a random sequence number, lest the IDs of
// quiet services all be multiples of the same power of two. The timer shuts the
// gate and ends after some beats without traffic; the next call then finds the gate
// shut, looks at the clock itself, and starts it again.
//
// A lease has its limit grow only on request, see [worker.Lease.Need]. The request is
// made in good time while there is traffic. The first call after a quiet time may find
// a limit in the past; it waits in line until the lease has grown.
package snowflake
