// Package conns accepts connections and serves each in a goroutine of its own, for any
// protocol whose requests follow one another on a connection.
//
// It keeps what must not differ between protocols: the number of connections is bounded;
// a client that begins a request has to send the rest of it in time, and one that does not
// read its replies is cut off; a clean stop lets each handler answer what it has read.
//
// # Stopping
//
// [Server.Shutdown] closes the listener and makes every Read fail from then on. A handler
// so answers the requests that it has read, and returns. The connection is then closed for
// writing first, and read until the client closes it, for a moment: closing it with input
// unread would make the system discard the replies that are still on their way.
package conns
