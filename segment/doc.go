// Package segment hands out IDs from ranges that a durable counter granted: Leaf's
// segment mode with its prefetched buffer.
//
// A [Store] keeps one counter per tag and moves it forward. A [Buffer] holds what
// was granted in memory, issues it with one atomic add per ID, and fetches the next
// range before it is missed. A [Set] is a buffer for every tag of a store.
//
// # What always holds
//
//  1. No ID is issued twice, by this process or by any other on the same counter,
//     as long as the store does not lose acknowledged writes.
//  2. IDs of one buffer are issued in increasing order, unless an operator lowered
//     the counter; a [Cursor] issues its blocks later than they were taken.
//  3. A call waits for nothing but the store, and fails when that has not delivered
//     for [Options.Wait].
//  4. A crash loses at most the stock in memory: [Options.MaxStock], and a loan that was
//     given back while the store was being asked. With the policy [Adaptive] the store
//     grants a buffer at most twice the IDs that it issues, and two steps. A clean stop of
//     the only node loses nothing but what cursors still hold.
//
// # The protocol
//
// Owning comes before issuing. [Store.Advance] returns only after the counter's
// new value is durable; the range between the old value and the new one then has
// one owner. An Advance with an unknown outcome is simply repeated: what the first
// one may have granted is lost, never issued. This is why the counter is moved by
// an amount and never set to a value.
//
// A range becomes a span with a cursor that counts reserved IDs up from zero. What lies
// below the cursor has an owner, what lies above it has none. A caller owns what its own
// atomic add moved the cursor over; an add that ends beyond the span reserved nothing
// there. The next span follows once one is drained, and a span that was followed is never
// used again: a caller that holds on to it for a long time reserves nothing from it.
// Counting from zero keeps a drained span's cursor from wrapping near the largest int64.
//
// One call to the store is in flight per buffer, and a bounded number per set. Callers
// may ask a set for any name: tags that the store has neither listed nor granted anything
// of get half of these calls at most, and only so many of them have a buffer.
// After a failure the next call follows a back-off with full jitter. Callers who
// find the stock empty wait; every outcome wakes them. Once the store has been
// failing for longer than a caller would wait, callers fail at once, until a call
// in the background has succeeded.
//
// # Lending
//
// [Buffer.Advance] reserves IDs for another process, and [Buffer.Return] puts the end of
// the latest such loan back. Nothing else moves a cursor back. It does so by one
// compare-and-swap, from the end of the loan to the first ID that is unused, and no ID has
// two owners through it:
//
//   - The loan has one owner, the borrower, who names its version and gives the IDs up with
//     the call. The call spends the version, whatever comes of it.
//   - The cursor stands at the end of the loan only if nothing was reserved since. It cannot
//     have moved on and come back: only another Return moves it back, of a later loan, and
//     to a buffer only the latest loan counts, under its lock.
//   - What every other caller gets follows from the cursor in the instant of its own add,
//     compare-and-swap or seal alone: at and above that value no ID has an owner. It does
//     not matter what the caller read before, or how long ago. When the stock is looked at
//     depends on such reads, and costs at most a call of the store.
//   - A span that was sealed or followed takes nothing back: a late caller could have it
//     from there after others had larger IDs.
//
// # Giving back
//
// [Buffer.Close] seals every span, first to last, by swapping its cursor to the end.
// What the swap returns is exact: callers before it own their IDs, callers after
// it get none. A grant that arrives later is dropped. Of what is left, the last
// contiguous run goes back by one conditional update ("if the run's last grant was
// the counter's last write"); runs that do not touch belong to different allocations,
// and others may own what lies between. That the counter stands at the run's end would
// not do: a store that lost the grant may have granted the same range to another node.
// The update is sent once. A second one could
// come after a first one that had succeeded, when another node had already been
// granted the same IDs and the counter stood at the same end again: it would take
// them away from under that node.
//
// # The regression guard
//
// A store can lose acknowledged writes: an asynchronous replica takes over, a
// backup is restored. The buffer therefore keeps, per source, one past the highest
// ID it was granted, across restarts if there is a [Memory]. A grant below that, or
// one from another server where the store is made of several, is never issued. The
// counter is lifted by an Advance whose range is discarded, by
// [Options.RegressionJump] above everything known. The guard narrows the loss and
// does not prove its absence: a node that remembers nothing of the lost ranges and
// asks first notices nothing. A store that never loses acknowledged writes is the
// cure.
package segment
