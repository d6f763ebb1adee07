// Package load puts load on a running server, measures the latency of its answers, and compares all
// of its IDs.
//
// [Run] takes a [Target], which speaks one protocol. A number of clients send requests to it, each
// over its own [Conn]. There are two ways:
//
// With a rate the loop is open. Request k is due k/rate seconds after the start, regardless of the
// requests before it, and its latency counts from that time. So a stall of one second shows as a
// second in every request that was due meanwhile, as it would to users, although only one request a
// client was on its way. (A tool that waits for the last answer before it sends the next request
// sees a single slow one, which is called coordinated omission.) If every client still waits at the
// end of the run, the unsent due requests count with their wait until then; a time-out counts with
// its time.
//
// Without a rate the loop is closed: each client sends its next request right after the last
// answer. That finds the highest throughput. Its latencies are those of the sent requests and say
// nothing about callers at a steady rate.
//
// The package compares every received ID with all others of its ID space, including those of the
// warm-up. It keeps numbers in compressed bitmaps and UUIDs in a hash set, up to a bound on memory.
// Beyond the bound it compares further IDs with the kept ones and forgets them; the [Result] says
// so.
package load
