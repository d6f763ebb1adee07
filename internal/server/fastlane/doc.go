// Package fastlane answers requests for one ID over HTTP/1.1 from an event loop, at a third of
// what net/http takes for them.
//
// It answers only what it understands to the last byte: GET of a path that names a scheme and
// a key, with headers that change nothing of the answer, or whose value it knows, and no
// body. Its answer is that of packages httpapi and v1api behind net/http, byte for byte but
// for the date. With anything else, an error that a request would be answered with included,
// it hands the connection over to net/http for good, with every byte from that request on. So
// there is one place that interprets what is unusual, and no two that could differ: a fuzz
// test compares both on any input.
package fastlane
