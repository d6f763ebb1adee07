// Package nats keeps tags and the records of workers in a JetStream stream of NATS. It is
// a backend of package kv.
//
// # The stream
//
// [Create] makes a stream of the given name with one subject for each cell, NAME.KIND.CELL,
// where CELL is the cell's name in unpadded base64url. The last message of a subject is the
// cell, and its sequence number in the stream is the version. A swap is one publish with the
// header Nats-Expected-Last-Subject-Sequence, which is sent once: the client's own repeats
// and its buffer for times without a connection are switched off.
//
// Reads go to the stream's leader. Direct gets, which any replica answers, may be stale, so
// a stream with AllowDirect is refused, and so is one that could lose a cell by itself:
// MaxAge, a limit on messages or bytes that discards old ones, storage in memory, a mirror.
//
// # What an acknowledgement means
//
// JetStream acknowledges a write when it is in the operating system's cache, of the server or,
// with replicas, of most of them. It syncs to disk every two minutes, unless the server runs
// with sync_interval: always (NATS 2.10 or later), which is what this store needs: without it
// a power failure loses acknowledged writes, on one server or on most replicas at once. A
// process that is killed loses nothing.
//
// With replicas a server of 2.11 or later is needed. Before that, two publishes with one
// expected sequence could both be accepted (nats-server issue 4320, pull request 6194).
package nats
