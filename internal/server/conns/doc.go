// Package conns accepts connections and serves them, for any protocol with one request after the
// other on a connection. A [Session] is the protocol's side of a connection.
//
// The package enforces the same limits for all protocols. It bounds the number of connections. A
// client that begins a request has to send the rest in time. It cuts off a client that does not
// read its replies. A clean stop answers every request that was read.
//
// # Two forms
//
// On Linux a few event loops serve all connections. A loop waits for many connections at once, with
// epoll, reads their input, has the session append its replies, and writes them at once, through
// buffers that its connections share. Nothing in a loop may wait. A goroutine executes a request
// that has to wait ([Conn.Later]) while the loop serves the others. The loop does not read that
// connection meanwhile, so its replies stay in order.
//
// A connection's turn ends after 16 KiB of replies, and a connection with more work goes to the end
// of a queue. The loop serves the queue for a millisecond at a time between two polls. It also
// reads a connection from the queue if the connection's last turn was full, or if it had more than
// 4 KiB of input. So a client with a small request waits for one round of the queue, however much
// work other clients have sent.
//
// On other systems, and with encryption, each connection has a goroutine. The session does not see
// the difference. What package tls sends takes the way of plain replies: the goroutine tries a write,
// and the backlog keeps the rest. A handshake has the time of one request, and its connection counts
// from the beginning. The close_notify of TLS follows the last reply.
//
// [Conn.HandOver] gives a connection away in the middle, to a server that knows more of its
// protocol.
//
// # Backpressure
//
// The package keeps a client's unread output, up to a bound. Beyond the bound it executes no
// further request, and then reads nothing more. All connections share a [Budget]. While it is
// spent, a client gets output only after it has read all earlier output, and has one write time-out
// for that.
//
// # Stopping
//
// [Server.Shutdown] closes the listener. The server reads nothing more, and answers the requests
// that it has read. It then closes a connection for writing first, and for a moment reads on until
// the client closes it: if the server closed it with unread input, the system would discard the
// replies on their way.
package conns
