package respapi

import (
	"sync/atomic"

	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// Full is the reply to a refused connection.
var Full = []byte("-ERR max number of clients reached\r\n")

var needsTLS = []byte("-ERR connect with TLS\r\n")

// An API serves the Redis protocol.
type API struct {
	*frontend.Options
	requests *telemetry.Requests

	table []command
	index map[string]*command // of table, by name
	names frontend.Names[string]
	lists [2]atomic.Pointer[[]byte] // what COMMAND answers, in RESP2 and RESP3

	lastID atomic.Int64 // of a connection; so many were accepted
	open   atomic.Int64 // connections
	done   atomic.Int64 // commands of ended connections
}

// New returns a front end for opts.
func New(opts *frontend.Options) *API {
	table := newTable()
	return &API{Options: opts, requests: opts.Requests.Of("resp"), table: table, index: newIndex(table)}
}

// Server returns a server of the protocol for opts.
func Server(opts *frontend.Options) *conns.Server {
	o := opts.Conns
	o.Refusal, o.TLS, o.NeedsTLS = Full, opts.TLS, needsTLS
	return conns.New(opts.Context, New(opts).Serve, &o)
}

// Serve makes the session of a connection.
func (a *API) Serve(c *conns.Conn) conns.Session {
	a.open.Add(1)
	return newSession(a, c)
}
