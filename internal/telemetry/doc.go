// Package telemetry is what a server tells monitoring of itself.
//
// Nothing is counted for an ID: a scrape reads the statistics that the packages segment,
// snowflake and worker derive from their cursors. Requests are counted by the front ends, in
// a [Recorder] for each connection or event loop, with two atomic adds and two looks at the
// clock for all that arrives at once.
//
// Spans are made where a server is told to trace, by handlers and by stores that stand before
// those of other servers. Without that there is nothing in the way of a request.
package telemetry
