// Package fastlane answers requests for IDs over HTTP/1.1 from an event loop, at a third of the cost
// of net/http.
//
// It answers only a request that it understands to the last byte: GET of a path with a scheme and a
// key, below /v1 perhaps with ?n= and ?ranges=1, no body, and headers that do not change the answer or whose value it knows. Its answer is
// that of packages httpapi and v1api behind net/http, byte for byte except the date. For any other
// request, and for a request that leads to an error, it hands the connection over to net/http for
// good, with every byte from that request on. So one place interprets unusual requests, and no two
// places could differ: a fuzz test compares both on any input.
//
// Over TLS the connection's goroutine takes the place of the loop. A client that agreed on HTTP/2 in
// the handshake goes to net/http at once.
package fastlane
