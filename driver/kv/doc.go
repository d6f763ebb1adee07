// Package kv is a store of tags and a registry of workers over any key-value store
// that can compare and swap. What is special about such a store is a [Backend]: five
// methods. All the rest is written once, here.
//
// # Keys
//
//	tags/TAG          a counter: {"v":1,"max_id":1,"step":1000,…}; a deleted tag leaves {"v":1,"deleted":true,"max_id":1,…}
//	workers/ID        the record of a worker, see [worker.Record]
//	format/tags       {"v":1,"store":"…"}: there is a store, with that identity; written last by [DB.Init]
//	format/workers    {"v":1}: there is a registry; written last by [DB.InitRegistry]
//
// No key is ever removed, so that a version never comes back for another content. The cell of a
// deleted tag keeps its counter, and a new tag of the name starts there: other processes may still
// issue IDs of the deleted one. The format stays 1, because releases that do not know the kept
// counter read such a cell as a deleted tag. They start a new tag below it.
//
// The cell of a counter holds the identity of the store, too, so that the swap that grants a
// range returns it. Where an older release has dropped it, it comes from format/tags, which is
// read between a read of the cell and a swap of it unchanged.
//
// # Counters
//
// A counter is moved by one [Backend.Swap] from the version that was last seen. At most
// one of all swaps that name a version is carried out, however late it arrives, so a swap
// whose answer was lost does no harm later: its IDs are lost. A swap is sent once.
//
// All calls of one [Store] for one tag share swaps: one goroutine at a time takes the
// calls that wait and moves the counter once, by what they want together. It continues
// from what its last swap left, so a counter that no other process wants costs one swap
// and no read.
//
// A give-back is a swap from the very cell that the grant left. If any write came after it,
// or the store lost it, the give-back is refused.
//
// # Fairness
//
// Processes that want one counter at the same time conflict. The value of a counter says
// how many times its writer was too late before it was first ("late"). Every process
// reads that, and waits for a random time up to so many round trips before it tries. It
// falls by a quarter with each write, so it follows the number of rivals. All go by the same
// number: if each went by its own luck, a lucky process would never wait, and the others
// would always be too late. A process that has been first many times in a row pauses for
// one round trip, so that others can show themselves.
package kv
