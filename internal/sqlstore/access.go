package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// An Access is the way to one table of a database. Its errors need not say which call failed.
type Access interface {
	// Create makes the table, with tags in it. If the table exists, the error wraps
	// [io/fs.ErrExist].
	Create(ctx context.Context, tags []segment.Tag) error

	Exists(ctx context.Context) (bool, error)

	// Do runs do on a connection. Each statement commits by itself and runs once. After an error
	// the caller must not read the variables of do, which may still be running.
	Do(ctx context.Context, do func(*Session) error) error

	// Transact runs do in a transaction, again for as long as the server undoes it in
	// favour of others.
	Transact(ctx context.Context, do func(*Session) error) error

	Explain(err error) error // says what to do about an error of the database
	Close()
}

// A Counters is the [Access] to the table of tags. Its callers check the arguments.
type Counters interface {
	Access
	Advance(ctx context.Context, tag string, n int64) (segment.Grant, error)
	Return(ctx context.Context, tag string, last segment.Grant, start int64) error
}

// Workers is the [Access] to the table of workers.
type Workers interface {
	Access
	ServerEpoch(ctx context.Context) (worker.ServerEpoch, error)
}

// Attempt makes one call, unless it is too late for it, and makes its error fit for people.
func Attempt(ctx context.Context, closed *atomic.Bool, explain func(error) error, do func() error) error {
	if closed.Load() {
		return leaf.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return nil
	}
	err = explain(err)
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
