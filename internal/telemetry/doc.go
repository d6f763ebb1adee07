// Package telemetry has the metrics and traces of a server.
//
// No counter moves for an ID: a scrape reads the statistics that the packages segment, snowflake
// and worker derive from their cursors. The front ends count requests in a [Recorder] for each
// connection or event loop, with two atomic adds and two readings of the clock for all requests
// that arrive at once.
//
// With tracing on, handlers make spans, and so do stores in front of other servers. Without it a
// request pays nothing.
package telemetry
