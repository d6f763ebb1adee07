// Package ticket draws IDs from several independent MySQL or MariaDB servers: Flickr's ticket
// servers, and a variant with blocks. Arithmetic gives each server IDs of its own, so a single live
// server keeps issuing, without fail-over, replicas or consensus.
//
//	db, err := ticket.New(servers, nil)
//	…
//	err = db.Init(ctx, tags) // once
//	set := segment.NewSet(db.Store(), nil) // or one tag: segment.NewBuffer
//	err = db.Close()
//
// # Tickets
//
// The default is exactly Flickr's scheme. Each of N servers has a table Tickets64 with an
// AUTO_INCREMENT key. It steps by auto_increment_increment N from its own auto_increment_offset, 1
// … N. A ticket is
//
//	REPLACE INTO Tickets64 (stub) VALUES ('a'); SELECT LAST_INSERT_ID();
//
// A SELECT that finds the tag replaces the values, so that an unknown tag writes nothing. A grant
// is one ID. All tags share the table and so one ID space; with [Layout.TablePerTag] each has its
// own table. Other programs may run Flickr's statement on the same tables. The store sets increment
// and offset in every packet. It also checks the server's own values, which those programs get:
// both must be 1, the default of a server for Leaf alone, or fit the server's number. The store
// does not use a server with other values.
//
// # Blocks
//
// [Layout.Stride] B divides the IDs into blocks of B. Server i owns the blocks whose number modulo
// N is i (TinyID's delta and remainder). A grant is part of one block, taken by one UPDATE of one
// row.
//
// # What always holds
//
// A table leaf_ticket in each database has the server's number, the number of servers, the layout,
// the generation and the members of the set. The store checks it before a server's first use. It
// refuses servers of another set, number, layout or generation, and a second one with the same
// number. Each row of leaf_ticket_tag has the generation too, and each drawing statement demands
// it. So [DB.Resize] stops the clients of the old generation on the servers themselves.
//
// A call with an unknown outcome loses a ticket; the next one goes to another server. The store
// leaves out a failing server for a while, checks it in the background, and takes it back when it
// is fit. IDs of one server only rise; those of different servers have no common order.
//
// Each server decides the durability: without innodb_flush_log_at_trx_commit=1, and sync_binlog=1 on
// a server with a binary log, the store logs a warning. It refuses tables without transactions.
//
// # Changing the number of servers
//
// [DB.Resize] needs every server of the old set and of the new one. It stops all of them, lifts every
// counter above the highest of all, and only then starts the servers in the new generation. After
// an interruption run it again, with the same servers or with the old ones: it starts over and
// skips IDs, but repeats none. Stop the programs that run Flickr's statement meanwhile, and change
// the servers' auto_increment_increment and auto_increment_offset for them.
//
// # Losing a server for good
//
// The counters of a server with lost data are unknown. [ResizeOptions].Lost takes the server out,
// or starts it over: the others continue [ResizeOptions].Jump above their highest counter. This
// assumes that the lost one was not further ahead, and that its data never returns. A tag on that
// server alone is lost.
//
// # Sessions
//
// A pool must be the store's own. Each connection must accept several statements in one packet and
// use utf8mb4: OpenDB of package driver/mysql makes such a pool from a plain DSN.
package ticket
