// Package respapi is the front end for the Redis protocol, RESP2 and RESP3: INCR takes an
// ID of a tag, LEAF.NEXT one of any scheme. What client libraries send of their own accord
// is answered as Redis answers it. docs/redis-protocol.md is the description for users.
//
// # Order and waiting
//
// The commands of a connection are carried out one after the other, and answered in that
// order. Replies are sent when all commands that were read are carried out, so that a
// pipeline costs one write; but before a command that has to wait for a store, and when many
// have come together. A command is first tried without a wait; where it has to, a goroutine
// carries it out, and the connection's further commands come after it.
//
// Equal INCRs that follow one another in what was read are served as one batch where the
// stock holds it, and one by one where not: each is answered as it would be alone.
//
// # Errors
//
// The first word of an error is what client libraries go by:
//
//	ERR        the command is wrong, or cannot succeed as it is
//	TRYAGAIN   the same command may succeed a moment later; nothing was issued
//	NOAUTH     a token is needed
//	WRONGPASS  the token is wrong
//	NOPERM     the token does not have the right
//	NOPROTO    HELLO asks for a version that there is not
//
// An error in the protocol itself is answered with ERR, and the connection closed.
package respapi
