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
//  1. A generator issues an ID only in a tick that is wholly between the floor and the
//     limit of the lease of its worker ID. Leases of one worker ID never share a time, so
//     no ID is issued twice. No clock can change that.
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
// caller has reserved, are one object behind one atomic pointer: nobody can compose a
// slot of one worker ID with another worker ID. The cursor only grows, by one
// atomic add for an ID. When the sequence of a tick is used up, the add by itself goes on
// in the next tick; the clock only pulls the cursor up to the present tick if it is
// behind. So a clock that steps back, or stops, costs only time borrowed from the future.
//
// The limit is the first slot that may not be issued: the least of the lease's limit rounded down
// to a tick, the end of the tick MaxAhead beyond the clock, and the end of the layout. It only
// grows, so a passed check stays passed. Callers see it as the gate. A caller who reserves the last
// slot below the gate shuts it, and while it is shut no caller adds. A caller between reading the
// gate and the add may then reserve beyond it. That slot is lost. Each such caller loses at most
// one, as the gate opens only when the cursor is below the limit.
//
// Callers who find the gate shut join the wait queue and sleep. As the limit grows they
// get slots in the order of their arrival, and the gate opens when the queue is empty. If
// the clock and the needs of the queue show that a call cannot be served in time, it fails
// at once and reserves nothing.
//
// Sealing swaps the cursor to a value beyond every limit. A caller who reserved before the swap
// owns the slot and may take any time to return it. A caller who adds after it gets a value beyond
// the gate, however long ago it loaded pointer and gate: swapping the pointer alone would not do
// that. The result of the swap is exact, and gives the tick after the last reserved one. Callers in
// the queue stay there and continue under the next lease, if one begins in time.
//
// # The clock
//
// Calls do not read the clock. A timer does, each millisecond or, for longer ticks, up to each 10
// ms: it pulls the cursor up, raises the limit and serves the queue. A tick that is entered by
// pulling begins at a random sequence number, so that the IDs of quiet services are not all
// multiples of the same power of two; where callers wait, at 0: they want all of it. The timer
// shuts the gate and ends after some turns without traffic; the next call then finds the gate shut,
// reads the clock itself, and starts the timer again.
//
// The limit of a lease grows only on request, see [worker.Lease.Need]. Traffic makes the
// request in good time. The first call after a quiet time may find a limit in the past; it
// waits in the queue until the lease has grown.
package snowflake
