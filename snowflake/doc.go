// Package snowflake makes IDs from the time, a worker ID and a sequence number.
//
// [Open] leases a worker ID and returns a [Node] that issues IDs under it:
//
//	ids, err := snowflake.Open(ctx, registry, nil)
//	id, err := ids.Next(ctx)
//
// A [Layout] says how many bits each part of an ID has. A [Generator] issues the IDs of one
// layout under the leases that a [worker.Keeper] gives it; a Node is a keeper with a
// generator for each of its layouts.
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
// A slot is tick<<sequenceBits | sequence. A lease and its cursor, the next slot that no
// caller has reserved, are one object behind one atomic pointer: a slot that was reserved
// under one worker ID cannot be composed with another. The cursor only grows, by one
// atomic add for an ID. When the sequence of a tick is used up, the add by itself goes on
// in the next tick; the clock only pulls the cursor up to the present tick if it is
// behind. So a clock that steps back, or stands still, costs time borrowed from the future
// and nothing else.
//
// The limit is the first slot that may not be issued: the least of the lease's limit
// rounded down to a tick, the end of the tick that is MaxAhead beyond the clock, and the
// end of the layout. It only grows, so that a check that was passed stays passed. Callers
// see it as the gate. A caller who reserves the last slot below the gate shuts it, and
// while it is shut no caller adds. A caller between reading the gate and the add may then
// reserve beyond it. That slot is lost; there are at most as many of them as such callers,
// as the gate opens only when the cursor is below the limit.
//
// Callers who find the gate shut join the wait queue. They sleep; slots are handed to them
// in the order in which they came as the limit grows, and the gate opens when the queue is
// empty. A call that cannot be served in time, by the clock and by what the queue needs, is
// refused at once and reserves nothing.
//
// Sealing swaps the cursor to a value beyond every limit. A caller who reserved before the
// swap owns the slot and may take any time to return it. A caller who adds after it gets a
// value beyond the gate, however long ago it loaded pointer and gate: swapping the pointer
// alone would not do that. What the swap returns is exact, and gives the tick after the
// last one reserved. Callers in the queue stay there and go on under the next lease, if
// one begins in time.
//
// # The clock
//
// Calls do not read the clock. A timer does, each millisecond or, for longer ticks, up to
// each 10 ms: it pulls the cursor up, raises the limit and serves the queue. A tick that
// is entered by pulling begins at a random sequence number, so that the IDs of quiet
// services are not all multiples of the same power of two; where callers wait, at 0: they
// want all of it. The timer shuts the gate and
// ends after some turns without traffic; the next call then finds the gate shut, reads the
// clock itself, and starts the timer again.
//
// A lease has its limit grow only on request, see [worker.Lease.Need]. The request is
// made in good time while there is traffic. The first call after a quiet time may find
// a limit in the past; it waits in the queue until the lease has grown.
package snowflake
