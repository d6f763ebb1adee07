// Package ticket draws IDs from several MySQL or MariaDB servers that know nothing of
// each other: Flickr's ticket servers, and a variant that deals in blocks. Each server
// owns IDs of its own by arithmetic, so that any one of them alive keeps issuing, and
// no fail-over, replica or consensus is needed.
//
// # Tickets
//
// The default is Flickr's scheme to the letter. Each of N servers has a table
// Tickets64 with an AUTO_INCREMENT key, and steps by auto_increment_increment N from
// an auto_increment_offset of its own, 1 … N. A ticket is
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a'); SELECT LAST_INSERT_ID();
//
// with the values replaced by a SELECT that finds the tag, so that an unknown tag
// writes nothing. A grant is one ID. All tags share the table and so one ID space; with
// [Layout.TablePerTag] each has a table of its own. Other programs may run Flickr's
// statement on the same tables. The store sets increment and offset in every packet,
// and looks at the server's own values too, which those programs get: both must be 1,
// the default of a server that only Leaf uses, or what the server's number demands. A
// server with others is not used.
//
// # Blocks
//
// With [Layout.Stride] B the IDs are divided into blocks of B, and server i owns the
// blocks whose number leaves the remainder i when divided by N (TinyID's delta and
// remainder). A grant is part of one block, taken by one UPDATE of one row.
//
// # What always holds
//
// A table leaf_ticket in each database says which of how many servers it is, the
// layout, and the generation of the set, and names its members. It is compared before
// a server's first use: servers of another set, number, layout or generation are
// refused, as is a second one with the same number. Each row of leaf_ticket_tag
// carries the generation too, and each statement that draws IDs demands it, so that
// [Resize] stops the clients of the old generation on the servers themselves, whatever
// they believe.
//
// A call with an unknown outcome is a ticket lost; the next one goes to another
// server. A server that fails is left out for a while, looked at in the background,
// and put back when it is fit. IDs of one server only go up; those of different
// servers have no order among each other.
//
// Durability is that of each server: innodb_flush_log_at_trx_commit=1, without which
// a warning is logged. Tables without transactions are refused.
//
// # Changing the number of servers
//
// [Resize] needs every server of the old set and of the new one. It stops all of
// them, lifts every counter above the highest of all, and only then puts the first of
// them to work in the new generation. Where it dies half-way it is run again, with the
// same servers or with the old ones: it begins anew and skips IDs, but repeats none.
// Programs that run Flickr's statement must be stopped meanwhile, and the servers'
// auto_increment_increment and auto_increment_offset changed for them.
//
// # Losing a server for good
//
// No one can tell how far a server was that has lost its data. [ResizeOptions].Lost takes
// it out, or lets it begin anew: the others go on [ResizeOptions].Jump above the highest
// counter that is left. This assumes that the lost one was not further ahead of them, and
// that its data never comes back into use. A tag that it alone had is gone with it.
//
// # Sessions
//
// A pool must be the store's own. Each connection must take several statements in one
// packet and must speak utf8mb4: OpenDB of package driver/mysql makes such a pool of
// a plain DSN.
package ticket
