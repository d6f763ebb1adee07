// Package access decides the rights and limits of a server's callers.
//
// A front end turns a client's input into [Credentials], asks the [Gate] for their [Caller], and
// asks the Caller before it looks anything up. So a caller without a right gets the same answer for
// existing and unknown things.
//
// A file lists tokens by their SHA-256 hash, with their rights ([ParseFile]). Slow hashes such as
// bcrypt are for passwords, which can be guessed; a token is 256 random bits, which cannot. The
// gate looks a token up by its hash in a map. The duration may reveal something of hashes, but not
// of a token: to make one whose hash begins with given bits is as hard as to guess it.
package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// A Right is a permission of a caller; | joins several.
type Right uint8

// The rights.
const (
	Take   Right = 1 << iota // IDs
	Read                     // tags, worker IDs and the status of the server
	Admin                    // change tags, free worker IDs; it contains Read
	Worker                   // claim worker IDs for another server
	Lease                    // of worker IDs of pools, for a program
)

// Credentials are a client's proof of identity.
type Credentials struct {
	Token       string            // "": no token
	Certificate *x509.Certificate // of the client, verified; nil: no certificate
	Addr        netip.Addr        // where the request came from
}

// The errors for callers. They repeat nothing of the request.
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
