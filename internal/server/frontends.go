package server

import (
	"context"
	"net"

	"github.com/leaf-id/leaf/internal/config"
	"github.com/leaf-id/leaf/internal/server/frontend"
	"github.com/leaf-id/leaf/internal/server/respapi"
	"github.com/leaf-id/leaf/internal/server/rpcapi"
	"github.com/leaf-id/leaf/internal/server/web"
)

// A FrontEnd is a row of the table of front ends.
type FrontEnd struct {
	Key   string // of its address in the configuration
	Name  string // of its port in the metrics
	Title string // for people
	url   string // the scheme of the server's URL; only the first one needs it

	onlyIDs bool // it serves no administrators

	// Default is the default address, which may be [config.Off].
	Default string

	address func(*config.Config) string
	serve   func(*frontend.Options) protocol
}

// FrontEnds is the one table of front ends. The server always serves the first one.
var FrontEnds = []FrontEnd{
	{
		Key: "listen", Default: config.DefaultListen, Name: "http", Title: "HTTP, gRPC", url: "http",
		address: func(c *config.Config) string { return c.Listen },
		serve:   func(o *frontend.Options) protocol { return web.New(o) },
	},
	{
		Key: "resp", Default: config.DefaultRESP, Name: "resp", Title: "the Redis protocol", onlyIDs: true,
		address: func(c *config.Config) string { return c.RESP },
		serve:   func(o *frontend.Options) protocol { return respapi.Server(o) },
	},
	{
		Key: "grpc", Default: config.DefaultGRPC, Name: "grpc", Title: "gRPC alone",
		address: func(c *config.Config) string { return c.GRPC },
		serve:   func(o *frontend.Options) protocol { return rpcapi.NewGRPC(o) },
	},
}

// nextProtos are the protocols that the parties of a TLS connection choose from, on any port.
var nextProtos = []string{"h2", "http/1.1"}

// A protocol serves a port. It may also have a method Reload, which takes up a changed
// configuration.
type protocol interface {
	// Serve serves the connections of l until Shutdown or Close.
	Serve(l net.Listener) error

	// Shutdown accepts no more connections and lets requests finish until ctx ends. It may be
	// called again.
	Shutdown(ctx context.Context) error

	// Close cuts all connections.
	Close()

	// Stats returns the number of open connections, and of refused ones.
	Stats() (open int, refused int64)
}
