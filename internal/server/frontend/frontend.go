// Package frontend is the common part of a server's front ends: the sources of IDs, the one table
// from errors to the codes of the protocols, and the one place that decides which words of an error
// callers get.
package frontend

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/server/conns"
	"github.com/leaf-id/leaf/internal/telemetry"
)

// Options are the services behind a front end, and facts about the server.
type Options struct {
	IDs     *issuer.Issuer
	Tags    *issuer.Tags    // nil: the segment scheme is not enabled
	Workers *issuer.Workers // nil: no time-based scheme is enabled
	Layouts issuer.Layouts  // for decoding; empty: those of package snowflake

	// Access decides who may do what: a front end asks it before it looks anything up.
	Access *access.Gate

	// Batches bounds how many large answers are made at the same time, by all front ends.
	Batches BatchLimiter

	// Health reports the server's problems; nil: it never has any.
	Health func() health.Report

	// Requests counts the requests for IDs, and why they failed: a [Kind.Reason].
	Requests *telemetry.FrontEnds

	// CutKey receives each request of Java Leaf's route for a tag whose name was cut at its last
	// dot; nil: nothing does.
	CutKey func(key, cut string)

	// Traces makes the spans of requests; nil: no request has one.
	Traces *telemetry.Traces

	// AccessLog logs some requests.
	AccessLog *AccessLog

	// Logger receives messages for operators.
	Logger *slog.Logger

	// Context is that of all requests. It ends late in a stop, with the reason.
	Context context.Context

	// CORSOrigins are the origins whose pages may read answers.
	CORSOrigins []string

	// TLS encrypts the ports; nil: nothing does.
	TLS *tls.Config

	// Conns has the limits of connections on each port, and the budget of all front ends for answers
	// that clients do not read. A nil budget sets no bound.
	Conns conns.Options

	// AnswerTimeout bounds a request from its end to that of its answer.
	AnswerTimeout time.Duration

	// Stopping is closed when the server stops; a nil one never is. What lasts longer than a
	// request ends then.
	Stopping <-chan struct{}

	// Route returns the names of the servers on the way of a tag's IDs, this one first, if the
	// store is another server; otherwise nil.
	Route func() []string

	// OutageBudget is how long what servers hold in memory is to last.
	OutageBudget time.Duration

	// Metrics serves Prometheus; nil: no metrics.
	Metrics http.Handler

	// Snapshot reads the same figures for the console; nil: there are none.
	Snapshot func(busiest int, named []string) *telemetry.Snapshot

	// Listen is the address of this front end. If only this machine reaches it, only requests
	// for this machine's own names are answered; nil: all.
	Listen net.Addr

	Address   string // of the server, for people
	Ports     []Port // the other addresses
	Version   string
	Started   time.Time
	StoreName string // a URL without credentials
	Registry  string // of worker IDs; likewise
}

// Names of the front ends that share a port, in the metrics.
const (
	HTTP   = "http"   // Java Leaf's routes, and others like them
	V1     = "v1"     // the HTTP API for new clients
	TinyID = "tinyid" // TinyID's routes
)

// A Port is an address of a server, for people.
type Port struct {
	Name, Title, Address string
}

// NeedTags returns the administration of the tags, or the error of a server without tags.
func (o *Options) NeedTags() (*issuer.Tags, error) {
	if o.Tags == nil {
		return nil, o.IDs.Check(issuer.Segment, "")
	}
	return o.Tags, nil
}

// NeedWorkers returns the administration of worker IDs, or the error of a server without them.
func (o *Options) NeedWorkers() (*issuer.Workers, error) {
	if o.Workers == nil {
		return nil, o.IDs.Check(issuer.Snowflake, "")
	}
	return o.Workers, nil
}

// Report reports the server's present problems.
func (o *Options) Report() health.Report {
	if o.Health == nil {
		return health.Report{}
	}
	return o.Health()
}

// StoreSilent reports whether the store has not answered since the server started.
func (o *Options) StoreSilent() bool { return o.Tags != nil && !o.Tags.Ready() }
