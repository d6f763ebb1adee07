// Package relay makes another Leaf server a store of tags and a registry of worker IDs. A server on
// top of it is a relay, for example at an edge site.
//
//	db, err := relay.Open([]string{"http://h1:8080", "http://h2:8080"}, nil)
//	…
//	set := segment.NewSet(db.Store(), nil) // no db.Init: the servers have their store already
//	ids, err := snowflake.Open(ctx, db.Registry(), nil)
//	err = db.Close()
//
// # What always holds
//
//  1. A lent range comes out of the upstream's memory and is in no other memory. So IDs are unique
//     through any number of relays, and a lost answer costs IDs, never uniqueness.
//  2. Each server in the chain has an outage budget and a loss budget of its own. A relay serves
//     from its stock while its upstream is away, just as the upstream does without its database.
//     The cost of crashes multiplies along the chain: each server may take twice the amount that it
//     issues.
//  3. The regression guard runs at the end of the chain, next to the database. Lent ranges have no
//     order, because the upstream may be several servers.
//  4. Worker IDs come from the registry at the end of the chain. Each server passes the calls on,
//     sends a swap once, and caches nothing. While one link is away, no process claims or extends a
//     lease; leases last half an hour.
//  5. Every answer has the names of the servers on its way. Servers that form a circle notice it,
//     issue nothing and say so.
package relay

import (
	"context"
	"crypto/tls"

	"github.com/leaf-id/leaf/internal/hops"
	"github.com/leaf-id/leaf/internal/leafconn"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// ErrLoop is wrapped by errors of servers in a circle.
var ErrLoop = hops.ErrLoop

// Options are the optional settings of [Open]; nil means all defaults.
type Options struct {
	// Token is shown to the servers. TokenFile names a file that holds it instead, which may
	// be replaced at any time.
	Token, TokenFile string

	// TLS is for servers whose URL begins with https; nil: the defaults of crypto/tls.
	TLS *tls.Config
}

// A DB leads to one or several servers with one store. Its methods are safe for concurrent use.
type DB struct{ conn *leafconn.Conn }

// A Store is the servers' store. It lends from a server's memory, so a range may be smaller than
// requested. Alter drops a server's stock below a raised max_id at once.
type Store interface {
	segment.Store
	segment.Returner // to the server that made the grant
	segment.Catalog
	segment.Expecter
	segment.MaskedStore // hidden by the servers
	segment.StrictStore // passed on to the servers' store
	segment.PeriodCatalog

	// ObserveTag tells the servers that IDs of a tag up to largest are in use. It returns the tag
	// after the change, and the ID below which other processes may still issue from their stock.
	ObserveTag(ctx context.Context, tag string, largest int64) (now segment.Tag, othersBelow int64, err error)

	// RaiseTag raises the counter of a tag by n.
	RaiseTag(ctx context.Context, tag string, n int64) (segment.Tag, error)
}

// A Registry is the servers' registry. It sends a swap once.
type Registry interface {
	worker.Registry
	worker.LossyRegistry
}

// Open returns a DB for servers with these URLs, such as http://host:8080. It connects later.
func Open(urls []string, opts *Options) (*DB, error) {
	conf := leafconn.Options{Name: hops.Name()}
	if opts != nil {
		conf.TLS = opts.TLS
		switch {
		case opts.TokenFile != "":
			conf.Token = leafconn.TokenFile(opts.TokenFile)
		case opts.Token != "":
			conf.Token = leafconn.FixedToken(opts.Token)
		}
	}
	conn, err := leafconn.Open(urls, &conf)
	if err != nil {
		return nil, err
	}
	return &DB{conn}, nil
}

// Store returns the store.
func (db *DB) Store() Store { return leafconn.Store{Conn: db.conn} }

// Registry returns the registry of worker IDs.
func (db *DB) Registry() Registry { return leafconn.Registry{Conn: db.conn} }

// Route returns the names of the servers that IDs come through, that of this process first.
func (db *DB) Route() []string { return db.conn.Route() }

// Identities returns the identity of the servers' store under the name "store", as far as a server
// knows it and may tell it.
func (db *DB) Identities(ctx context.Context) (map[string]string, error) {
	return db.conn.Identities(ctx)
}

// Close ends the connections.
func (db *DB) Close() error { return db.conn.Close() }
