// Package conns accepts connections and serves them, for any protocol whose requests follow
// one another on a connection: the protocol's side of a connection is a [Session].
//
// It keeps what must not differ between protocols: the number of connections is bounded;
// a client that begins a request has to send the rest of it in time, and one that does not
// read its replies is cut off; a clean stop answers what was read.
//
// # Two forms
//
// On Linux a few event loops serve all connections: each waits for many of them at once, with
// epoll, reads what has come, has the session append its replies, and writes them at once,
// from and to buffers that its connections share. Nothing in a loop may wait. A request that
// has to is carried out by a goroutine ([Conn.Later]) while the loop serves the others, and
// its connection is not read meanwhile, so that its replies stay in order.
//
// A connection's turn ends after 16 KiB of replies, and a connection with work left goes to the end
// of a queue. The loop serves the queue for a millisecond at a time between two looks at epoll. A
// connection whose last turn was a full one, or that had more than 4 KiB of input, is read from the
// queue too. So a client with a small
// request waits for one round of the queue, however much work other clients have sent.
//
// On other systems, and where a connection is encrypted, each connection has a goroutine. The
// session does not see which form it is.
//
// A connection can be given away in the middle ([Conn.HandOver]), to a server that knows more
// of its protocol.
//
// # Backpressure
//
// What a client leaves unread is kept for it, up to a bound; beyond it no further request is
// carried out, and then nothing more is read. All connections share a [Budget]. While it is spent, a
// client gets output only when it has read all before it, and has one write time-out for that.
//
// # Stopping
//
// [Server.Shutdown] closes the listener; nothing is read any more, and the requests that were
// read are answered. A connection is then closed for writing first, and read until the client
// closes it, for a moment: closing it with input unread would make the system discard the
// replies that are still on their way.
package conns
