// Package relay makes another Leaf server a store of tags and a registry of worker IDs: a
// server on top of it is a relay, at an edge site for example.
//
// # What always holds
//
//  1. A range that a relay is lent came out of its upstream's memory and is in no other
//     memory. So IDs are unique whatever number of relays stand behind one another, and a
//     call whose answer is lost costs IDs, never uniqueness.
//  2. Each server in the chain has an outage budget and a loss budget of its own. A relay
//     serves from its stock while its upstream is away, as that does while its database is.
//     What crashes may cost multiplies along the chain: each server may be granted twice
//     what it gives to those behind it.
//  3. The regression guard is the work of the server at the end of the chain, which has the
//     database. Ranges that a relay is lent come in no order, as its upstream may be several
//     servers.
//  4. Worker IDs are those of the registry at the end of the chain: each call is passed on
//     there, a swap is sent once, and nothing is kept on the way. While one link is away no
//     lease is claimed or extended; leases last half an hour.
//  5. Servers that are each other's store, in whatever long circle, issue nothing and say
//     so: every answer carries the names of the servers that it came through.
package relay

import (
	"crypto/tls"

	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// ErrLoop is wrapped by errors of servers that are each other's store or registry.
var ErrLoop = hops.ErrLoop

var (
	_ segment.Store        = (*Store)(nil)
	_ segment.Returner     = (*Store)(nil)
	_ segment.Catalog      = (*Store)(nil)
	_ worker.Registry      = (*Registry)(nil)
	_ worker.LossyRegistry = (*Registry)(nil)
)

// Options are the optional settings of [Open]; nil means all defaults.
type Options struct {
	// Token is shown to the servers. TokenFile names a file that holds it instead, which may
	// be replaced at any time.
	Token, TokenFile string

	// TLS is for servers whose URL begins with https; nil: the defaults of crypto/tls.
	TLS *tls.Config
}

// A DB is the way to one or several servers that have one store. Its methods are safe for
// concurrent use.
type DB struct{ conn *leafconn.Conn }

// A Store is the servers' store; see [segment.Store]. It deals in what a server holds in
// memory: a range may be smaller than asked for.
type Store struct{ servers leafconn.Store }

// A Registry is the servers' registry; see [worker.Registry].
type Registry struct{ servers leafconn.Registry }

// Open returns the way to servers with these URLs, such as http://host:8080. It contacts
// none.
func Open(urls []string, o *Options) (*DB, error) {
	opts := leafconn.Options{Name: hops.Name()}
	if o != nil {
		opts.TLS = o.TLS
		switch {
		case o.TokenFile != "":
			opts.Token = leafconn.TokenFile(o.TokenFile)
		case o.Token != "":
			opts.Token = leafconn.FixedToken(o.Token)
		}
	}
	conn, err := leafconn.Open(urls, &opts)
	if err != nil {
		return nil, err
	}
	return &DB{conn}, nil
}

// Store returns the store.
func (db *DB) Store() *Store { return &Store{leafconn.Store{Conn: db.conn}} }

// Registry returns the registry of worker IDs.
func (db *DB) Registry() *Registry { return &Registry{leafconn.Registry{Conn: db.conn}} }

// Route returns the names of the servers that IDs come through, that of this process first.
func (db *DB) Route() []string { return db.conn.Route() }

// Close ends the connections.
func (db *DB) Close() error { return db.conn.Close() }
