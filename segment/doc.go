// Package segment hands out IDs from ranges of a durable counter: Leaf's segment mode with its
// prefetched buffer.
//
// A [Store] keeps one counter per tag and moves it forward. A [Buffer] holds granted ranges in
// memory, issues an ID with one atomic add, and fetches the next range in time. A [Set] has a
// buffer for every tag of a store.
//
// # What always holds
//
//  1. No ID is issued twice, by this process or by any other on the same counter, as long as the
//     store does not lose acknowledged writes.
//  2. One buffer issues increasing IDs, unless an operator lowered the counter; a [Cursor] issues
//     its blocks later than it took them.
//  3. A call waits only for the store, and fails when the store has not delivered for
//     [Options.Wait].
//  4. A crash loses at most the stock in memory: [Options.MaxStock], a loan that came back during a
//     call to the store, and consecutive IDs for a caller who left before they came. With the policy [Adaptive] the store grants a buffer at most
//     twice the IDs that it issues, and two steps. A clean stop of the only node loses only the
//     rest of cursors' blocks.
//
// # The protocol
//
// Owning comes before issuing. [Store.Advance] returns only after the counter's new value is
// durable; the range between the old value and the new one then has one owner. The buffer repeats
// an Advance with an unknown outcome: it never issues the range of the first one, if any. Therefore
// an Advance moves the counter by an amount and never sets it to a value.
//
// A range becomes a span with a cursor that counts reserved IDs up from zero. IDs below the cursor
// have an owner, IDs above it do not. A caller owns the IDs that its own atomic add moved the
// cursor over; an add that ends beyond the span reserves nothing there. After a span is empty the
// next one follows, and the buffer never uses an earlier span again: a caller that holds on to it
// for a long time reserves nothing from it. Counting from zero keeps an empty span's cursor from
// wrapping near the largest int64.
//
// A buffer has one call to the store in flight, and a set a bounded number. Callers may ask a set
// for any name. Tags without a listing and without a grant get at most half of these calls, and a
// bounded number of buffers; further callers share listings of the store, one at a time. After a
// failure the next call follows a back-off with full jitter. Callers wait while the stock is empty;
// every outcome wakes them. When the store has failed for longer than a caller would wait, callers
// fail at once, until a call in the background has succeeded.
//
// # Tags without a stock
//
// A tag with strict order, periods or a mask has no stock. The store refuses its Advance, so that
// a caller without knowledge of such tags gets an error; see [StrictStore] and [MaskedStore]. Callers that
// wait share one call to the store, for exactly their number of IDs. A caller never joins a call
// under way. A failed call fails its callers at once, without a back-off: the next call is that of
// the next caller.
//
// The numbers of a tag with a mask leave the process only hidden: by the key that the tag's option
// names, and whose fingerprint it has. Without that key the process does not call the store. The mask
// of a name never changes, and a deleted name gets no other one: one mask gives a number twice only if
// the counter does.
//
// # Lending
//
// The set of a server lends IDs: Advance reserves them for another process, and Return puts the end
// of the latest such loan back. Nothing else moves a cursor back. Return does so by one
// compare-and-swap, from the end of the loan to its first unused ID, and no ID gets two owners:
//
//   - The loan has one owner, the borrower, who names its version and gives the IDs up with the
//     call. The call uses up the version, with any outcome.
//   - The cursor is at the end of the loan only if no call reserved anything since. It cannot have
//     moved on and returned: only another Return moves it back, of a later loan, and a buffer
//     accepts only the latest loan, under its lock.
//   - Every other caller's IDs depend only on the cursor at the instant of its own add,
//     compare-and-swap or seal: at and above that value no ID has an owner. Earlier reads of the
//     caller do not matter, however old. They only decide when it checks the stock, which costs at
//     most a call of the store.
//   - A sealed or earlier span takes nothing back: a late caller could have it from there after
//     others had larger IDs.
//
// # Giving back
//
// [Buffer.Close] seals every span, first to last, by swapping its cursor to the end. The result of
// the swap is exact: callers before it own their IDs, callers after it fail. The buffer drops a
// later grant. One conditional update gives the last contiguous run of the rest back ("if the run's
// last grant was the counter's last write"). Runs that do not touch belong to different
// allocations, and others may own the IDs between them. The condition that the counter is at the
// run's end would not suffice: a store that lost the grant may have granted the same range to
// another node. The buffer sends the update once. A second one could follow a successful first one,
// after another node got the same IDs and the counter was at the same end again: it would take the
// IDs away from that node.
//
// # The regression guard
//
// A store can lose acknowledged writes: an asynchronous replica takes over, or an operator restores
// a backup. The buffer therefore keeps, per source, one past its highest granted ID, with a
// [Memory] also across restarts. It never issues a grant below that, nor one of another server if
// the store has several. An Advance then lifts the counter by [Options.RegressionJump] above
// everything known, and the buffer discards its range. The guard narrows the loss and does not
// prove its absence: a node without knowledge of the lost ranges that asks first notices nothing.
// The cure is a store that never loses acknowledged writes.
package segment
