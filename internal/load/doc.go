// Package load puts load on a running server, measures how long it takes to answer, and
// compares all IDs that it hands out.
//
// [Run] takes a [Target], which speaks one protocol, and has a number of clients send
// requests to it, each over a [Conn] of its own. There are two ways:
//
// With a rate the loop is open. Request k is due k/rate seconds after the start, whatever
// happened to the requests before it, and its latency counts from that time. A server that
// stalls for a second therefore shows as a second to every request that was due meanwhile,
// as it would to its users, although only as many requests as there are clients were under
// way. (A tool that sends the next request only when it has the last answer sees a single
// slow one, which is called coordinated omission.) Requests that were due and never sent,
// because every client still waited when the run ended, count with the time that they had
// waited by then; those that ran into the time-out count with the time-out.
//
// Without a rate the loop is closed: each client sends its next request as soon as it has
// the last answer. That finds the highest throughput. Its latencies are those of the
// requests that were sent and say nothing of what callers at a steady rate would see.
//
// Every ID that is received is compared with all others of its ID space, those of the
// warm-up too. Numbers are kept in compressed bitmaps, UUIDs in a hash set, within a bound
// on memory. Beyond the bound further IDs are compared with those that are kept, and are
// themselves forgotten; the [Result] says so.
package load
