// Package nats keeps tags and the records of workers in a JetStream stream of NATS. It is
// a backend of package kv, and the example of how a new key-value store is added: one file
// with a [kv.Backend], and tests that call the suites of package drivertest. What such a
// backend must find out about its store is below.
//
// # The stream
//
// [Create] makes a stream of the given name with one subject for each cell, NAME.KIND.CELL,
// where CELL is the cell's name in unpadded base64url. The last message of a subject is the
// cell, and its sequence number in the stream is the version.
//
// # Are writes sent once?
//
// A swap is one publish with the header Nats-Expected-Last-Subject-Sequence. The client's own
// repeats and its buffer for times without a connection are switched off; [New] refuses a
// connection with such a buffer.
//
// # Are reads up to date?
//
// Reads go to the stream's leader. Direct gets, which any replica answers, may be stale, so
// a stream with AllowDirect is refused. A leader that was cut off from the others may answer
// with old cells until it notices. That delays a caller and does no harm: a swap from an old
// cell is a conflict, because only a majority accepts it.
//
// # Can acknowledged writes be lost?
//
// A stream that could lose a cell by itself is refused: MaxAge, a limit on messages or bytes
// that discards old ones, storage in memory, a mirror.
//
// JetStream acknowledges a write when it is in the operating system's cache, of the server or,
// with replicas, of most of them. It syncs to disk every two minutes, unless the server runs
// with sync_interval: always (NATS 2.10 or later), which is what this store needs: without it
// a power failure loses acknowledged writes, on one server or on most replicas at once. A
// process that is killed loses nothing. A client cannot ask for the setting, so the registry
// says that it may lose writes, and each claim of a worker ID waits (worker.Options.ClaimDelay).
//
// What tells a stream from one that was made anew, or put in its place, is the time of the
// message that says that there is a store (segment.Grant.Server).
//
// With replicas a server of 2.11 or later is needed. Before that, two publishes with one
// expected sequence could both be accepted (nats-server issue 4320, pull request 6194).
//
// # Which clock is it?
//
// JetStream tells no time, but stamps each message: the registry's clock is the stamp of a
// message that is written for the question.
package nats
