// Package frontend is what the front ends of a server share: what they serve, the one
// table that maps errors to the codes of the protocols, and the one place that decides
// which words of an error callers are told.
package frontend

import (
	"errors"
	"net"
	"time"

	"github.com/leaf-id/leaf/internal/issuer"
	"github.com/leaf-id/leaf/internal/server/access"
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

	// Ready says why no requests for IDs of a scheme should be sent to this server, or of
	// any of its schemes if that is empty; nil if they should. A nil func means always.
	Ready func(scheme string) error

	// Requests counts the requests for IDs, and why they failed: a [Kind.Reason].
	Requests telemetry.FrontEnds

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

var errStoreSilent = errors.New("the store has not answered yet")

// NotReady says why a scheme that is enabled cannot serve at present.
func (o *Options) NotReady(scheme string) error {
	switch scheme {
	case issuer.Snowflake, issuer.UID:
		if o.Workers != nil {
			return o.Workers.Err()
		}
	case issuer.Segment, issuer.Ticket:
		if o.StoreSilent() {
			return errStoreSilent
		}
	}
	return nil
}

// StoreSilent reports whether the store has not answered since the server started.
func (o *Options) StoreSilent() bool { return o.Tags != nil && !o.Tags.Ready() }
