// Package kv implements a store of tags and a registry of workers over any key-value store with
// compare-and-swap. A [Backend] with five methods adapts such a store. This package has the rest.
//
// # Keys
//
//	tags/TAG          a counter: {"v":1,"max_id":1,"step":1000,…}; a deleted tag leaves {"v":1,"deleted":true,"max_id":1,…}
//	workers/ID        the record of a worker, see [worker.Record]
//	format/tags       {"v":1,"store":"…"}: the store exists and has that identity; written last by [DB.Init]
//	format/workers    {"v":1,"store":"…"}: the same for the registry; written last by [DB.InitRegistry]
//
// A counter with options besides the description has "v":2 and a field "options". Older releases refuse
// it: they would drop the options with their next write. A tag with strict order has such an option, and
// its counter moves by a swap alone. The counter of a tag with periods has "v":3, and that of a tag with
// a mask "v":4: a release that does not know them would serve their numbers as those of a usual tag. A
// deleted tag with a mask leaves a counter above the domain of the mask.
//
// The package never removes a key, so a version never returns with another content. The cell of a
// deleted tag keeps its counter, and a new tag with that name starts there: other processes may
// still issue IDs of the deleted one. The format stays 1, because older releases read such a cell
// as a deleted tag. They start a new tag below it.
//
// The cell of a counter also has the identity of the store, so the swap that grants a range returns
// it. If an older release has dropped it, the store takes it from format/tags. It reads that marker
// after the cell, and the swap then finds the cell unchanged: both belong to the same store.
//
// # Counters
//
// One [Backend.Swap] moves a counter, from the last seen version. At most one of all swaps from a
// version succeeds, however late it arrives. So a swap with a lost answer does no harm later: its
// IDs are lost. The store sends a swap once.
//
// All calls of one [Store] for one tag share swaps. One goroutine takes the waiting calls and moves
// the counter once, by their sum. It continues from the result of its last swap, so without a rival
// process a move costs one swap and no read.
//
// A give-back is a swap from the cell that the grant left. After any other write, or after the
// store lost the grant, it fails.
//
// # Fairness
//
// Processes that want one counter at the same time conflict. The counter's cell has a field "late":
// how many times its writer was too late before it succeeded. Every process reads it, and waits for
// a random time of up to so many round trips before it tries. The field falls by a quarter with
// each write, so it follows the number of rivals. All processes use the same number: with numbers
// of their own, a lucky process would never wait and the others would always be late. A process
// that has won many times in a row pauses for one round trip, so that others can show themselves.
package kv
