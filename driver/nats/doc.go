// Package nats keeps tags and the records of workers in a JetStream stream of NATS. It is a backend
// of package kv, and an example for a new key-value store: one file with a [kv.Backend], and tests
// that call the suites of package drivertest. The questions below are those that every such backend
// must answer.
//
//	db, err := nats.Open("nats://h1:4222,nats://h2:4222", nil)
//	…
//	err = db.Init(ctx, tags) // once; db.InitRegistry(ctx) for worker IDs
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// # The stream
//
// Init creates a stream of the given name with one subject for each cell, NAME.KIND.CELL. CELL is
// the cell's name in unpadded base64url. The last message of a subject is the cell, and its
// sequence number in the stream is the version.
//
// # Does the client send a write once?
//
// A swap is one publish with the header Nats-Expected-Last-Subject-Sequence. The package switches
// off the client's own repeats and its buffer for times without a connection; [New] refuses a
// connection with such a buffer.
//
// # Are reads up to date?
//
// Reads go to the stream's leader. Any replica answers direct gets, possibly with old cells, so the
// package refuses a stream with AllowDirect. An isolated leader may answer with old cells until it
// notices its isolation. That delays a caller and does no harm: a swap from an old cell is a
// conflict, because only a majority accepts it.
//
// # Can the stream lose acknowledged writes?
//
// The package refuses a stream that could lose a cell by itself: one with MaxAge, with a limit on
// messages or bytes that discards old ones, in memory, or a mirror.
//
// JetStream acknowledges a write when it is in the operating system's cache of the server or, with
// replicas, of most servers. It syncs to disk every two minutes, or with sync_interval: always
// (NATS 2.10 or later) before each acknowledgement. This store needs the latter: otherwise a power
// failure loses acknowledged writes, on one server or on most replicas at once. A killed process
// loses nothing. A client cannot read the setting, so the registry reports possible losses, and
// each claim of a worker ID waits (worker.Options.ClaimDelay).
//
// The time of the first message, the marker of the store, distinguishes a stream from a new one
// with the same name (segment.Grant.Server).
//
// Replicas need a server of 2.11 or later. Older servers could accept two publishes with one
// expected sequence (nats-server issue 4320, pull request 6194).
//
// # Which clock is it?
//
// JetStream has no clock for clients, but stamps each message. The registry writes a message and
// reads its stamp.
package nats
