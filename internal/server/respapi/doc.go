// Package respapi is the front end for the Redis protocol, RESP2 and RESP3: INCR takes an ID of a
// tag, LEAF.NEXT one of any scheme. It answers the automatic commands of client libraries as Redis
// does. docs/redis-protocol.md is the description for users.
//
// # Order and waiting
//
// The server executes a connection's commands one after the other, and answers them in that order.
// It sends the replies after it has executed all commands that it has read, so a pipeline costs one
// write. It sends them earlier before a command that has to wait for a store, and when many have
// come together. It first tries a command without a wait; if the command has to wait, a goroutine
// executes it, and the connection's further commands come after it.
//
// Equal consecutive INCRs in one read form a batch if the stock holds it, and otherwise run one by
// one. Each gets the answer that it would get alone.
//
// # Errors
//
// Client libraries branch on the first word of an error:
//
//	ERR        the command is wrong, or cannot succeed as it is
//	TRYAGAIN   the same command may succeed a moment later; nothing was issued
//	NOAUTH     a token is needed
//	WRONGPASS  the token is wrong
//	NOPERM     the token does not have the right
//	NOPROTO    HELLO asks for an unknown version
//
// After an error in the protocol itself the server answers with ERR, and closes the connection.
package respapi
