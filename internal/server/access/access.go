// Package access decides who may do what on a server, and how much of it.
//
// A front end turns what a client sent into [Credentials], asks the [Gate] for the
// [Caller] that they belong to, and asks the Caller before it looks anything up. A caller
// without a right so gets the same answer for what exists and for what does not.
package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"
)

// A Right is what a caller may do; several are joined with |.
type Right uint8

// The rights.
const (
	Take   Right = 1 << iota // IDs
	Read                     // tags, worker IDs and the status of the server
	Admin                    // change tags, free worker IDs
	Worker                   // claim worker IDs for another server
)

// Credentials are what a client has shown of itself.
type Credentials struct {
	Token       string            // "": none
	Certificate *x509.Certificate // of the client, verified; nil: none
	Addr        netip.Addr        // where the request came from
}

// What a caller is told. The texts hold nothing of what it sent.
var (
	// ErrUnauthenticated says that the credentials are missing, wrong or expired.
	ErrUnauthenticated = errors.New("a valid token is needed")

	// ErrForbidden says that the caller does not have the right.
	ErrForbidden = errors.New("not allowed")

	// ErrNoCredentials is the [ErrForbidden] of a server that knows no tokens.
	ErrNoCredentials = fmt.Errorf("%w: other machines reach this server and it has no credentials, so it does this for no caller", ErrForbidden)

	// ErrLimit is what every [LimitError] is.
	ErrLimit = errors.New("over a limit")
)

// A LimitError says that a caller has had all it may have for now.
type LimitError struct {
	What       string        // the limit, in words
	RetryAfter time.Duration // when a repetition may succeed; 0: never as it is
}

func (e *LimitError) Error() string { return ErrLimit.Error() + ": " + e.What }

// Is makes a LimitError an [ErrLimit].
func (e *LimitError) Is(target error) bool { return target == ErrLimit }

// Options say what holds for callers that show no credentials.
type Options struct {
	Local      bool // only this machine reaches the server
	PublicRead bool // everyone may read
}

// A Gate holds the rules in force. It is safe for concurrent use. A nil Gate is that of a
// server that other machines reach, without credentials and with public reading.
type Gate struct {
	rules     atomic.Pointer[rules]
	anonymous Caller
}

// rules are replaced as a whole.
type rules struct {
	open      bool
	anonymous Right // what callers without credentials may do
}

// New returns a Gate without credentials and limits.
func New(opts Options) *Gate {
	g := new(Gate)
	g.anonymous.gate = g
	g.rules.Store(newRules(opts))
	return g
}

func newRules(opts Options) *rules {
	r := &rules{open: true, anonymous: Take}
	if opts.Local {
		r.anonymous |= Read | Admin | Worker
	}
	if opts.PublicRead {
		r.anonymous |= Read
	}
	return r
}

var (
	noGate   = newRules(Options{PublicRead: true})
	noCaller Caller // of a nil Gate
)

func (g *Gate) current() *rules {
	if g == nil {
		return noGate
	}
	return g.rules.Load()
}

// Open reports whether everyone may take IDs without limits: no credentials and no limits
// are configured.
func (g *Gate) Open() bool { return g.current().open }

// Caller returns the caller that c belongs to. The error is [ErrUnauthenticated], or a
// [*LimitError] after too many attempts.
func (g *Gate) Caller(c Credentials) (*Caller, error) {
	if g == nil {
		return &noCaller, nil
	}
	return &g.anonymous, nil
}

// A Caller is who has shown some credentials. It is safe for concurrent use and may be
// kept as long as its connection: it follows the rules as they change.
type Caller struct {
	gate *Gate
}

// Take reports why the caller may not take n IDs, and counts them. With n = 0 it reports
// whether the caller may take any. The error is [ErrUnauthenticated], [ErrForbidden] or a
// [*LimitError].
func (c *Caller) Take(scheme, key string, n int64) error { return c.May(Take) }

// May reports why the caller has none of the rights.
func (c *Caller) May(r Right) error {
	if c == nil {
		return ErrUnauthenticated
	}
	if c.gate.current().anonymous&r == 0 {
		return ErrNoCredentials
	}
	return nil
}
