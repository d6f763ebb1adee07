package sqlstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store    = (*Store)(nil)
	_ segment.Returner = (*Store)(nil)
	_ segment.Catalog  = (*Store)(nil)
)

// A Store keeps tags in a database. It is a [segment.Store], a [segment.Returner]
// and a [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct {
	dialect Dialect
	logger  *slog.Logger
	closed  atomic.Bool
	skipped sync.Map // names that were logged because they cannot be a tag's
}

// NewStore returns a store on a dialect, which it closes with itself.
func NewStore(d Dialect, logger *slog.Logger) *Store { return &Store{dialect: d, logger: logger} }

// A Dialect is what differs between databases. Its methods get arguments that were
// checked; their errors need not say which call failed.
type Dialect interface {
	Advance(ctx context.Context, tag string, n int64) (segment.Grant, error)
	Return(ctx context.Context, tag string, last segment.Grant, start int64) error
	Page(ctx context.Context, after *string, limit int) ([]Row, error) // by name
	Create(ctx context.Context, tag segment.Tag) error
	Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error)
	Delete(ctx context.Context, name string) error
	Explain(err error) error // says what to do about an error of the database
	Close() error
}

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := s.call(ctx, func() (err error) {
		if n < 0 {
			return fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
		}
		if err := segment.CheckKnown(tag); err != nil {
			return err
		}
		grant, err = s.dialect.Advance(ctx, tag, n)
		return err
	})
	if err != nil {
		return segment.Grant{}, fmt.Errorf("advance %q: %w", tag, err)
	}
	return grant, nil
}

// Return moves tag's counter back to start if the grant was its last write, as the time
// of that write and the server say.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	unused := leaf.Range{Start: start, End: last.Range.End}
	err := s.call(ctx, func() error {
		if unused.Empty() || unused.Start < 0 {
			return leaf.ErrInvalid
		}
		if err := segment.CheckKnown(tag); err != nil {
			return err
		}
		return s.dialect.Return(ctx, tag, last, start)
	})
	if err != nil {
		return fmt.Errorf("return %v of %q: %w", unused, tag, err)
	}
	return nil
}

// Tags lists all tags by name. It reads some at a time and holds nothing of the
// database in between, so that a slow reader of the listing is in nobody's way. A
// tag that exists from first to last is listed once. A row whose name cannot be a
// tag's is left out and logged; values that are missing are zero.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		var after *string
		for limit := firstPage; ; limit = min(4*limit, maxPage) {
			var records []Row
			err := s.call(ctx, func() (err error) {
				records, err = s.dialect.Page(ctx, after, limit)
				return err
			})
			if err != nil {
				yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
				return
			}
			for _, r := range records {
				if s.listable(r.Name) && !yield(r.Tag(), nil) {
					return
				}
			}
			if len(records) < limit {
				return
			}
			after = &records[limit-1].Name
		}
	}
}

// The rows that a listing reads at once: few at first, because a probe wants but one.
const (
	firstPage = 16
	maxPage   = 1024
)

// listable reports whether a tag can have that name, and logs one that cannot once.
func (s *Store) listable(name string) bool {
	err := segment.CheckTagName(name)
	if err != nil {
		if _, known := s.skipped.LoadOrStore(name, true); !known {
			s.logger.Warn("row of leaf_alloc left out: delete it", "biz_tag", name, "err", err)
		}
	}
	return err == nil
}

// Create adds a tag; the time of its last change is the database's.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	err := s.call(ctx, func() error {
		if err := tag.Check(); err != nil {
			return err
		}
		return s.dialect.Create(ctx, tag)
	})
	if err != nil {
		return fmt.Errorf("create tag %q: %w", tag.Name, err)
	}
	return nil
}

// Alter changes a tag and returns it as it then is.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := s.call(ctx, func() (err error) {
		if err := cmp.Or(change.Check(), segment.CheckKnown(name)); err != nil {
			return err
		}
		tag, err = s.dialect.Alter(ctx, name, change)
		return err
	})
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	return tag, nil
}

// Delete removes a tag.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := s.call(ctx, func() error {
		if err := segment.CheckKnown(name); err != nil {
			return err
		}
		return s.dialect.Delete(ctx, name)
	})
	if err != nil {
		return fmt.Errorf("delete tag %q: %w", name, err)
	}
	return nil
}

// Close ends the use of the database, which stays open: it is the caller's. Calls
// that wait fail with an error that wraps [leaf.ErrClosed], as later calls do.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	if err := s.dialect.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

func (s *Store) call(ctx context.Context, do func() error) error {
	return Attempt(ctx, &s.closed, s.dialect.Explain, do)
}

// Attempt runs one call of a dialect and makes its error fit for people.
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

// ErrMovedOn is why a give-back was refused.
var ErrMovedOn = errors.New("the counter was written by others since, or by another server, or the tag is gone")
