// Package worker leases worker IDs, so that IDs made of a time and a worker ID are
// unique whatever clocks, pauses, crashes and networks do.
//
// A [Registry] holds one cell per worker ID and changes it only by compare-and-swap.
// The cell's [Record] names an instance (the holder), a term (how many claims there
// were) and a horizon (a time). A [Keeper] claims a worker ID, moves the horizon
// ahead of the clock, and tells its generators through a [Lease] which times they may
// issue; a [StateFile] remembers the lease across restarts. All times are Unix
// milliseconds; a layout rounds floors up and limits down to its own ticks.
//
// # What always holds
//
//  1. No time is issued under one worker ID in two leases, that is, by two holders or
//     by one holder before and after it lost the ID. Within one lease a generator's
//     cursor only grows. So no ID of one layout is issued twice.
//  2. This needs no clock, and no bound on how long anything takes.
//  3. It needs a registry that does not lose acknowledged writes, and a disk that
//     keeps what was synced. Where a registry may lose writes, see below.
//
// Clocks decide only which time is sensible to issue and which worker ID is worth
// claiming: order and availability.
//
// # The protocol
//
// Claim. Read all records. Choose a worker ID whose horizon is ahead neither of this
// machine's clock nor of the registry's. Write to the state file what will be claimed: if
// this process is killed now, the next one can hand it back. Swap the record for one with a
// fresh random instance, the next term, and a horizon ahead of the clock. The floor is the
// horizon that was replaced. Read all records again: the claim must still be there, and a layout
// whose name stands for other values elsewhere is refused. Write the state file. Only then is
// the first time issued.
//
// Hold. A generator may issue the times from the floor up to the least of three: the
// horizon, as far as the registry is known to agree; the mark, as far as the state
// file was synced; and its own bound ahead of the clock. The horizon is extended by a
// swap every few seconds. The mark is written ahead of use, and only grows.
//
// Lose. A swap that fails, or whose outcome is unknown, is resolved by reading the
// record. If that shows what was written, it counts once another swap from there is
// acknowledged: a database may show what it has not synced yet, and lose it. Another
// instance, or none, in a record that is not older than ours means that the ID was taken:
// the generators are sealed at once, and another ID is claimed. A record that is missing
// or older means that the registry lost writes: it is put back, counted and reported.
//
// Hand back. Seal every generator: its cursor is swapped to its end, so that a caller
// on its way either owns what it gets or gets nothing. Write to the state file that the
// lease has ended, and where: no process continues it. Swap the record for one without an
// instance, whose horizon lies above everything issued. That order, each step only after
// the one before has succeeded; else the lease runs out, or the next process hands it back.
// Where the registry cannot be asked the file is left as it is, for the next process.
//
// Start again. The lease of a dead process in the state file is handed back at its mark,
// after the file says that it has ended. Then a worker ID is claimed as above, usually
// another one, since the mark is ahead of the clock. Where the registry cannot be asked,
// the new process continues the lease from the mark up to the horizon in the file. The old
// process is known to be dead if the file is the very same one (boot ID, device, inode,
// birth time) and its lock, which is held for a process's life, is free. A file without
// that proof (a copy, one from before a restart of the machine, one on a machine that hides
// its boot ID) is left alone: another worker ID is claimed, at the cost of one ID for one
// horizon. The same holds for a file that the disk has damaged: both of its slots must be
// whole, and one must follow the other, since the older one says a lower mark.
//
// # Why no time has two owners
//
// Step 1. A record's horizon never goes below a time that may have been issued under
// its worker ID. A holder issues only below the horizon that the registry agreed to.
// A claim and an extension only raise the horizon. A hand-back lowers it to what lies
// above everything issued, and nothing is issued afterwards, because the generators
// were sealed (or their process is dead and issued nothing from the mark on) and because
// the state file said before that the lease has ended, so that no process continues it. The
// file says the same of a lease that was lost.
//
// Step 2. Every swap compares the whole record, or its version, which no other content of
// the cell ever has. Every claim writes an instance that never existed before. So of two
// claims of one record one fails; an extension or a hand-back fails once another claim has
// succeeded; and a swap that was delayed for any time either finds exactly the record that
// it was made for, or does nothing.
//
// Step 3. By 1, what earlier leases issued lies below the horizon that a claim
// replaces, and what they may still issue does too: they never hear of a larger one, by
// 2. The claim issues only from that horizon on. Hence leases do not overlap.
//
// Step 4. A process that starts from a state file continues the lease of a dead one.
// The dead one issued only below the mark, as the mark was synced before use; the new
// one issues only from the mark on. Two processes never start from one file, because
// of its lock, nor from two copies, because a copy has another identity.
//
// Step 5. Lease and cursor are one object in a generator: a time reserved under one
// worker ID is never made an ID with another.
//
// # Failures
//
//	the clock steps back or forth, or strobes   IDs go on with the monotonic clock; a step forwards is followed once it is steady and confirmed
//	the clock is off at the start               no claim; the error says by how much and against what
//	process killed                              handed back at its mark by the next start; at most that span of times is lost
//	process or machine paused                   goes on below its old limit, which no other node issues; loses its ID if that was claimed meanwhile
//	registry away                               goes on until the horizon, 30 minutes; then no IDs, and a clear error
//	registry away at the start                  goes on from the state file, if that is proven and its horizon not passed; else waits
//	answer to a swap lost                       the record is read; only this node has its instance
//	registry lost writes                        put back; or, where another node has claimed meanwhile, stopped
//	registry lost a claim                       the claim is made again
//	disk full or broken                         no more IDs once the mark is reached, within seconds
//	state file lost, damaged, copied, foreign   another worker ID is claimed
//	all worker IDs held                         waits; the error says when the first lease runs out
//
// # Registries that lose writes
//
// A fail-over to a replica that lags forgets the last writes, perhaps a claim. A
// holder notices when it next extends, and puts its record back or stops. So a claim is
// dangerous only for a while after a loss. A [LossyRegistry] names the incarnation that answers,
// see [Reign], and each record carries a stamp: the incarnation under which it was written,
// since when that is known to have answered, and the registry's claim delay, which is long
// enough for a holder to notice ([Options.ClaimDelay]). On such a registry:
//
//   - A claim counts only after a look that finds it, and then finds an incarnation that
//     has stood for the claim delay. Until then the look is repeated, and the lease is extended.
//     The look comes after the swap, which may have been made under another incarnation than
//     what was read before it.
//   - Until the registry has agreed to an extension after that look, only times up to the
//     registry's time of the write before it, plus the claim delay, less the tolerance between
//     clocks, are issued. The process may have been paused since it looked, and a claim after a
//     loss begins above that. It is a bound on times, not on when they are issued. The first
//     extension is made at once; where it comes later than those times, the process claims anew.
//   - Since when an incarnation has stood is its earliest stamp in all records; if there is
//     none, it is now. A stamp of another incarnation says nothing.
//   - The floor of a claim is never below that time plus the claim delay, however long ago that
//     was: the registry's clock may have been set meanwhile, or run fast.
//   - The time is never asked for before the incarnation: an older time would make a stamp
//     that is older than the reign.
//   - Only a process whose clock agrees with the registry's, within [Options.Tolerance], writes
//     a stamp: a new server whose clock is behind, and is set right later, would look old.
//   - All nodes go by one claim delay, the largest in any record. A node whose lease needs a longer
//     one claims nothing, unless it was told to raise it.
//   - Where another reign may leave no mark ([Reign].Unmarked) only the latest stamp counts.
//     A write under another incarnation ended the reign; so did a silence of all nodes for two
//     extension periods.
//   - Where no incarnation is known each claim waits until looks have found it for the claim
//     delay, without a gap of two extension periods.
//   - A lease is extended, or put back, only before its horizon by the registry's clock,
//     and this machine's. Later, others may have held the worker ID, and the registry may
//     have lost that too.
//   - The state file says only after the last look that a process may go on from it. A start from
//     the state file alone has the same bound, after the last extension that the file has, so that
//     no clock of this machine has to be right. Such a process does not put its record back either,
//     since others may have held the worker ID meanwhile: it claims anew. So it does where the
//     registry agrees only after those times, or says a claim delay that is too short for it.
//
// What remains possible: a holder that is cut off from the present server for longer than the
// claim delay, or goes on with a former one that was not shut off; a proxy that
// switches back and forth; and the loss of the very write that set or raised the claim delay.
// Clocks of nodes and servers that differ by more than the tolerance count as one of these. Each
// can issue what another holder issues.
//
// # Outside the model
//
// A process or a virtual machine that is restored from a snapshot of its memory, and a
// data directory that is rolled back in place without a restart of the machine: both
// bring back a past that nothing here can tell from the present. [Static] and
// [Options.Reclaim] trust what their users say about other machines.
package worker
