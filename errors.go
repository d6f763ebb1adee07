package leaf

import "errors"

// The errors that callers branch on. Packages wrap them with what they know; test
// with errors.Is.
var (
	// ErrInvalid: an argument is out of its range or malformed. Nothing changed.
	ErrInvalid = errors.New("invalid argument")

	// ErrUnknownTag: no tag of that name was ever created, or it was deleted.
	ErrUnknownTag = errors.New("unknown tag")

	// ErrTagExists: a tag of that name exists already.
	ErrTagExists = errors.New("tag exists")

	// ErrExhausted: the stock in memory is used up and the store did not deliver in
	// time, or IDs are asked for faster than a layout has them. A later call may
	// succeed.
	ErrExhausted = errors.New("no IDs left for the moment")

	// ErrNotContiguous: the source has no range of so many IDs that follow one
	// another. It may have as many in several ranges.
	ErrNotContiguous = errors.New("not contiguous")

	// ErrOverflow: the counter has come to the end of the 63-bit ID space, or the
	// layout to the end of its time. No later call will succeed.
	ErrOverflow = errors.New("at the end of the range of IDs")

	// ErrRegression: an operation would lower a counter below IDs that are in use.
	ErrRegression = errors.New("counter would move backwards")

	// ErrUnsupported: the store cannot do this.
	ErrUnsupported = errors.New("not supported by this store")

	// ErrClosed: the generator or store was closed.
	ErrClosed = errors.New("closed")

	// ErrNoLease: no worker ID is held, or its lease ran out. A later call may
	// succeed.
	ErrNoLease = errors.New("no valid lease of a worker ID")

	// ErrClock: the clock is too far behind the times that may be issued. A later
	// call may succeed.
	ErrClock = errors.New("the clock is behind")
)

// A StoreError is what a store of counters, or a registry of worker IDs, answered. Its
// words may name servers, databases and users: they are for a log, not for callers from
// elsewhere.
type StoreError struct{ Err error }

// Error returns the words as they are.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the error that was wrapped.
func (e *StoreError) Unwrap() error { return e.Err }
