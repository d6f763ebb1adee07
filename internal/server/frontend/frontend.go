// Package frontend is what the front ends of a server share: what they serve, the one
// table that maps errors to the codes of the protocols, and the one place that decides
// which words of an error callers are told.
package frontend

import (
	"net"
	"net/http"
	"time"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// Options are what a front end serves, and what it tells of the server.
type Options struct {
	IDs     *issuer.Issuer
	Tags    *issuer.Tags    // nil: the segment scheme is not enabled
	Workers *issuer.Workers // nil: no time-based scheme is enabled
	Layouts issuer.Layouts  // for decoding; none: those that package snowflake has

	// Access decides who may do what: a front end asks it before it looks anything up.
	Access *access.Gate

	// Turns bounds how many large answers are made at the same time, by all front ends.
	Turns Turns

	// Unsent bounds the memory of answers that clients do not read, of all front ends; nil sets no
	// bound.
	Unsent *conns.Budget

	// Health says what is wrong with the server; nil: nothing ever is.
	Health func() health.Report

	// Requests counts the requests for IDs, and why they failed: a [Kind.Reason].
	Requests telemetry.FrontEnds

	// CutKey receives each request of Java Leaf's route for a tag whose name was cut at its last
	// dot; nil: nothing does.
	CutKey func(key, cut string)

	// Traced says that contexts of requests carry spans.
	Traced bool

	// Stopping is closed when the server stops; a nil one never is. What lasts longer than a
	// request ends then.
	Stopping <-chan struct{}

	// Route returns the names of the servers that IDs of tags come through, this one first,
	// where the store is another server; nil where it is none.
	Route func() []string

	// OutageBudget is how long what servers hold in memory is to last.
	OutageBudget time.Duration

	// Metrics serves what Prometheus reads; nil: there is nothing.
	Metrics http.Handler

	// Listen is the address of the server. If only this machine reaches it, only requests
	// for this machine's own names are answered; nil: all.
	Listen net.Addr

	Address   string // Listen for people
	RESP      string // the address for the Redis protocol; empty: off
	Version   string
	Started   time.Time
	StoreName string // a URL without credentials
	Registry  string // of worker IDs; likewise
}

// Report says what is wrong with the server at present.
func (o *Options) Report() health.Report {
	if o.Health == nil {
		return health.Report{}
	}
	return o.Health()
}

// StoreSilent reports whether the store has not answered since the server started.
func (o *Options) StoreSilent() bool { return o.Tags != nil && !o.Tags.Ready() }
