// Package worker leases worker IDs, so that IDs made of a time and a worker ID are unique in spite
// of wrong clocks, pauses, crashes and broken networks.
//
// A [Registry] holds one cell per worker ID and changes it only by compare-and-swap. The cell's
// [Record] names an instance (the holder), a term (the number of claims so far) and a horizon (a
// time). A [Keeper] claims a worker ID and moves its horizon ahead of the clock. A [Lease] tells
// the keeper's generators which times they may issue, and a [StateFile] remembers it across
// restarts. All times are whole milliseconds; a layout rounds floors up and limits down to its own
// ticks.
//
// # What always holds
//
//  1. Two leases of one worker ID share no time, whether two holders have them or one holder that
//     lost the ID and got it again. Within one lease a generator's cursor only grows. So no ID of
//     one layout is issued twice.
//  2. This needs no clock, and no bound on the duration of anything.
//  3. It needs a registry that does not lose acknowledged writes, and a disk that keeps synced
//     data. Further rules below cover registries that may lose writes.
//
// Clocks only decide which times are sensible to issue and which worker IDs are worth claiming.
// They affect order and availability.
//
// # The protocol
//
// Claim. The keeper reads all records and chooses a worker ID whose horizon is ahead neither of
// this machine's clock nor of the registry's. It writes the intended claim to the state file: if
// this process is killed now, the next one can hand the claim back. It swaps the record for one
// with a fresh random instance, the next term, and a horizon ahead of the clock. The replaced
// horizon is the lease's floor. The keeper then reads all records again. The claim must still be
// there. The keeper gives up if another record has other values for a layout of the same name. It
// writes the state file, and only then do its generators issue the first time.
//
// Hold. A generator may issue the times from the floor up to the lowest of three bounds: the
// horizon to which the registry has agreed, the mark in the synced state file, and its own bound
// ahead of the clock. The keeper extends the horizon by a swap every few seconds. It writes the
// mark ahead of use, and the mark only grows.
//
// Lose. If a swap fails, or its outcome is unknown, the keeper reads the record. If it finds its
// own write there, the write counts only after the registry has acknowledged another swap from it:
// a database may show an unsynced write and then lose it. If it finds another instance, or a record
// without one, and it is not older than its own, the worker ID was taken: the keeper seals the
// generators at once and claims another ID. If it finds no record or an older one, the registry has
// lost writes: the keeper puts its record back, counts the loss and reports it.
//
// Hand back. The keeper seals every generator: it swaps the cursor to its end, so that a concurrent
// caller either owns its IDs or gets none. It writes to the state file that the lease has ended,
// and where, so that no process continues it. It swaps the record for one without an instance and
// with a horizon above all issued times. Each step waits for the success of the one before. After a
// failure the lease runs out, or the next process hands it back. If the registry does not answer,
// the keeper leaves the file as it is, for the next process.
//
// Start again. The keeper finds the lease of a dead process in the state file. It writes to the
// file that this lease has ended, and hands it back at its mark. Then it claims a worker ID as
// above, usually another one, since the mark is ahead of the clock. If the registry does not
// answer, the new process continues the old lease from the mark up to the horizon in the file. The
// old process is certainly dead if the file is the very same one (boot ID, device, inode, birth
// time) and its lock is free, because a process holds that lock for life. A file may lack that
// proof: a copy, a file from before a restart of the machine, or one on a machine that hides its
// boot ID. Then the keeper leaves its lease alone and claims another worker ID, which costs one ID
// for one horizon. It does the same with a file that the disk has damaged: both slots must be
// whole, and one must follow the other, since the older one has a lower mark.
//
// # Why no time has two owners
//
// Step 1. A record's horizon never goes below a time that may have been issued under its worker ID.
// A holder issues only below the horizon to which the registry agreed. A claim and an extension
// only raise the horizon. A hand-back lowers it to a time above all issued ones, and no generator
// issues under that lease afterwards: the generators were sealed, or their process is dead and
// issued nothing from the mark on. Before the hand-back the state file says that the lease has
// ended, so no process continues it. The file says the same of a lost lease.
//
// Step 2. Every swap compares the whole record, or its version, which no other content of the cell
// ever has. Every claim writes an instance that never existed before. So of two claims of one
// record one fails. An extension or a hand-back fails after another claim has succeeded. A swap
// with any delay either finds exactly the record that it expects, or does nothing.
//
// Step 3. By step 1, the horizon that a claim replaces is above the times that earlier leases
// issued. It is also above those that they may still issue: by step 2, the registry agrees to no
// larger horizon of theirs. The claim issues only from the replaced horizon on. Hence leases do not
// overlap.
//
// Step 4. A process that starts from a state file continues the lease of a dead one. The dead one
// issued only below the mark, because it synced the mark before use; the new one issues only from
// the mark on. Two processes never start from one file, because of its lock, nor from two copies,
// because a copy has another identity.
//
// Step 5. Lease and cursor are one object in a generator: a time reserved under one worker ID never
// becomes an ID with another.
//
// # Failures
//
//	the clock steps back or forth, or strobes   IDs follow the monotonic clock; the keeper follows a step forwards once the clock is steady and confirmed
//	the clock is off at the start               no claim; the error has the difference, and from which clock
//	process killed                              the next start hands the lease back at its mark; the times up to the mark are lost
//	process or machine paused                   issues below its old limit, as no other node does; loses its ID if another node claimed it meanwhile
//	registry away                               issues until the horizon, 30 minutes; then no IDs, and a clear error
//	registry away at the start                  continues from a proven state file until its horizon; otherwise waits
//	answer to a swap lost                       reads the record; only this node has its instance
//	registry lost writes                        puts the record back; stops if another node has claimed the ID meanwhile
//	registry lost a claim                       claims again
//	disk full or broken                         no more IDs from the mark on, within seconds
//	state file lost, damaged, copied, foreign   claims another worker ID
//	all worker IDs held                         waits; the error says when the first lease runs out
//
// # Registries that lose writes
//
// A fail-over to a lagging replica forgets the last writes, perhaps a claim. A holder notices at
// its next extension, and puts its record back or stops. So a claim is dangerous only for a while
// after a loss. A [LossyRegistry] names the answering incarnation, see [ServerEpoch]. Each record
// carries a stamp: the incarnation at the write, since when that incarnation is known to have
// answered, and the registry's claim delay, which leaves a holder enough time to notice
// ([Options.ClaimDelay]). On such a registry:
//
//   - A claim counts only after a look that finds it, together with an incarnation that has
//     answered for the claim delay. Until then the keeper repeats the look and extends the lease.
//     The look follows the swap, because a read before the swap may have seen another incarnation.
//   - After that look a lease is short until the registry agrees to an extension. It ends at the
//     registry's time of the last write before the look, plus the claim delay, less the tolerance
//     between clocks. A claim after a loss begins above that, and the process may have been paused
//     since its look. The end bounds the issued times, not when the process issues them. The keeper
//     makes the first extension at once; if the agreement comes after those times, it claims again.
//   - An incarnation has answered since its earliest stamp in all records; without a stamp, since
//     now. A stamp of another incarnation proves nothing.
//   - The floor of a claim is never below that time plus the claim delay, even long afterwards: the
//     registry's clock may have been set meanwhile, or may run fast. For the same reason the claim
//     delay has to be over by this machine's clock, too.
//   - The keeper reads the incarnation before the time: with an older time a stamp would be older
//     than its incarnation.
//   - A process writes a stamp only if its clock agrees with the registry's, within
//     [Options.Tolerance]. A new server with a slow clock would look old after the correction of
//     that clock.
//   - All nodes follow one claim delay, the largest in any record. A node whose lease needs a
//     longer one claims nothing, unless an operator has it raise the delay.
//   - If another server may have answered without a trace ([ServerEpoch].Untracked), only the
//     latest stamp counts. A write under another incarnation ended the earlier one; so did a
//     silence of all nodes for two extension periods, by the registry's clock or by the nodes':
//     the registry's may have been set back meanwhile. A silence begins with the first question of
//     the last look: another server may have answered the rest.
//   - If the incarnation is unknown, each claim waits until looks have found it for the claim
//     delay, without a gap of two extension periods.
//   - The keeper extends a lease, or puts it back, only before its horizon by the registry's clock
//     and this machine's. Later, others may have held the worker ID, and the registry may have lost
//     that too. The answer with the time may have been on its way for long, or the machine suspended,
//     which only its wall clock shows: the latest time counts.
//     Another incarnation's clock may be behind by the tolerance, which then counts against
//     the lease. Where that decides, the keeper reads the incarnation once more after the answer:
//     another server may have given the time, or the answer.
//   - The state file allows a process to continue a lease only after the last look. A start from
//     the state file alone has the same bound, from the last extension in the file, so that it
//     needs no right clock; that end comes earlier by the tolerance if another incarnation agrees
//     than the one in the file. Such a process does not put its record back, since others may have held
//     the worker ID meanwhile: it claims again. It also claims again if the registry agrees only
//     after those times, or has a claim delay below this node's.
//
// Some failures can still make two holders issue the same ID: a holder that is paused, or cannot
// reach the present server, for longer than the claim delay, or still uses a former one that runs on;
// a proxy that switches back and forth; clocks of a node and a server that differ by more than the
// tolerance (two servers may differ by twice that); a server that comes back under its name after
// little more than two extension periods, while its clock and the nodes' differ from those before by
// the same; a machine that is suspended for longer than the claim delay while it waits for an
// answer, and whose wall clock is set back meanwhile; and the loss of the very write that set or
// raised the claim delay.
//
// # Leases for other programs
//
// [Pools] leases worker IDs to programs that have a generator of their own and cannot reach the
// registry. A pool has cells of its own in the registry, and a lease is a record in one of them: a
// worker ID of the pool and the times from a floor up to a limit. Servers remember nothing about
// leases, so any server renews any lease.
//
//   - An operator creates a pool with its layout, which never changes. A claim never creates one: a
//     typo in its name would begin a second space of equal IDs.
//   - A limit is the registry's time plus the TTL; the program's clock does not count. On a registry
//     that may lose writes it is the server's own time, if that is earlier. A server whose
//     clock differs from the registry's by more than the tolerance grants nothing.
//   - A floor is the replaced horizon, or the registry's time less the tolerance if that is later: a
//     registry restored from a backup does not know the horizons since. Once the leases before the
//     restore have been over for the tolerance, new ones begin above them.
//   - The record's instance is the secret of the lease. If the answer to a claim is lost, so is the
//     secret, and the worker ID stays taken up to its limit.
//   - A renewal needs the secret and always writes: an answer from a read alone may come from a
//     registry that has lost the lease. It never lowers the limit. If the outcome of its swap is
//     unknown, a second swap has to be acknowledged. A renewal counts only if its answer comes
//     before the old limit by the registry's clock: later another program may have had the worker
//     ID, and a registry restored from a backup does not know of that.
//   - A release names the latest time in an issued ID, and lowers the horizon to the time after it,
//     but never below the lease's floor, which the record keeps. The program stops its generator
//     first.
//   - On a registry that may lose writes the floor of a claim is at least the time since when the
//     incarnation has answered, plus the pool's claim delay. The server asks for the incarnation
//     again after the swap. A claim that would have to wait is given back, and only leaves its
//     stamp. A lease reaches at most the claim delay, less the tolerance, beyond the registry's time
//     of its last write; the claim delay is at least the longest TTL plus the tolerance. A renewal
//     counts only if an incarnation has answered before and after the swap, and is that of both
//     records. Otherwise the program uses the lease up to its limit and claims again.
//   - A registry that may lose writes and does not name its incarnation has no pools, because a
//     renewal could not notice a fail-over.
//
// A program compares the time inside each ID with the lease before it returns the ID; to compare the
// clock first is not enough. A lease belongs to one process: after a fork the child claims its own.
//
// # Outside the model
//
// Two operations bring back a past that this package cannot distinguish from the present: to
// restore a process or a virtual machine from a snapshot of its memory, and to roll a data
// directory back in place without a restart of the machine. [Static] and [Options.Reclaim] trust
// their users about other machines.
package worker
