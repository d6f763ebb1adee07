// Package access decides who may do what on a server, and how much of it.
//
// A front end turns what a client sent into [Credentials], asks the [Gate] for the
// [Caller] that they belong to, and asks the Caller before it looks anything up. A caller
// without a right so gets the same answer for what exists and for what does not.
//
// Who has which rights stands in a file that lists tokens by their SHA-256 hash
// ([ParseFile]). A slow hash such as bcrypt is for passwords, which can be guessed; a token
// is 256 random bits, which cannot. A token is looked up by its hash in a map. How long that
// takes may tell something of hashes, but not of a token: to make one whose hash begins with
// given bits is as hard as to guess it.
package access

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/netip"
	"time"
)

// A Right is what a caller may do; several are joined with |.
type Right uint8

// The rights.
const (
	Take   Right = 1 << iota // IDs
	Read                     // tags, worker IDs and the status of the server
	Admin                    // change tags, free worker IDs; it contains Read
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
