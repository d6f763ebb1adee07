package leaf

import "errors"

// The errors for callers to branch on, with errors.Is. Packages wrap them and add details.
var (
	// ErrInvalid: an argument is out of its range or malformed. Nothing changed.
	ErrInvalid = errors.New("invalid argument")

	// ErrUnknownTag: no tag of that name was ever created, or it was deleted.
	ErrUnknownTag = errors.New("unknown tag")

	// ErrTagExists: a tag of that name exists already.
	ErrTagExists = errors.New("tag exists")

	// ErrExhausted: the stock in memory is empty and the store did not deliver in time, or callers
	// want IDs faster than a layout has them. A later call may succeed.
	ErrExhausted = errors.New("no IDs left for the moment")

	// ErrNotContiguous: the source has no range of so many IDs that follow one
	// another. It may have as many in several ranges.
	ErrNotContiguous = errors.New("not contiguous")

	// ErrOverflow: the counter has too few IDs left below the end of the 63-bit ID space or of its
	// mask, or the layout has reached the end of its time. A later call succeeds only for fewer IDs.
	ErrOverflow = errors.New("at the end of the range of IDs")

	// ErrRegression: an operation would lower a counter below IDs in use.
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

// A StoreError is an error of a store of counters, or of a registry of worker IDs. Its text may
// name servers, databases and users: it is for a log, not for callers from elsewhere.
type StoreError struct{ Err error }

// Error returns the words as they are.
func (e *StoreError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *StoreError) Unwrap() error { return e.Err }
