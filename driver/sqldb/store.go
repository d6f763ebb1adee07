package sqldb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync/atomic"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store    = (*Store)(nil)
	_ segment.Returner = (*Store)(nil)
	_ segment.Catalog  = (*Store)(nil)
)

// Options are the optional settings of a [Store]; nil means all defaults.
type Options struct {
	// Logger gets one line when the store is first used, and one for each
	// connection that is given up. Default: nothing is logged.
	Logger *slog.Logger
}

func (o *Options) logger() *slog.Logger {
	if o == nil || o.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Logger
}

// A Store keeps tags in a database. It is a [segment.Store], a [segment.Returner]
// and a [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct {
	dialect dialect
	closed  atomic.Bool
}

// A dialect is what differs between databases. Its methods get arguments that were
// checked; their errors need not say which call failed.
type dialect interface {
	advance(ctx context.Context, tag string, n int64) (segment.Grant, error)
	giveBack(ctx context.Context, tag string, unused leaf.Range) error
	list(ctx context.Context) ([]segment.Tag, error)
	create(ctx context.Context, tag segment.Tag) error
	alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error)
	remove(ctx context.Context, name string) error
	explain(err error) error // says what to do about an error of the database
	close() error
}

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := s.call(ctx, func() (err error) {
		if n < 0 {
			return fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
		}
		if err := knowable(tag); err != nil {
			return err
		}
		grant, err = s.dialect.advance(ctx, tag, n)
		return err
	})
	if err != nil {
		return segment.Grant{}, fmt.Errorf("advance %q: %w", tag, err)
	}
	return grant, nil
}

// Return moves tag's counter back to unused.Start if it stands at unused.End.
func (s *Store) Return(ctx context.Context, tag string, unused leaf.Range) error {
	err := s.call(ctx, func() error {
		if unused.Empty() || unused.Start < 0 {
			return leaf.ErrInvalid
		}
		if err := knowable(tag); err != nil {
			return err
		}
		return s.dialect.giveBack(ctx, tag, unused)
	})
	if err != nil {
		return fmt.Errorf("return %v of %q: %w", unused, tag, err)
	}
	return nil
}

// Tags lists all tags by name, as they are when the listing begins.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		var tags []segment.Tag
		err := s.call(ctx, func() (err error) {
			tags, err = s.dialect.list(ctx)
			return err
		})
		for _, tag := range tags {
			if err == nil && !yield(tag, nil) {
				return
			}
		}
		if err != nil {
			yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
		}
	}
}

// Create adds a tag; the time of its last change is the database's.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	err := s.call(ctx, func() error {
		if err := tag.Check(); err != nil {
			return err
		}
		return s.dialect.create(ctx, tag)
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
		if err := cmp.Or(change.Check(), knowable(name)); err != nil {
			return err
		}
		tag, err = s.dialect.alter(ctx, name, change)
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
		if err := knowable(name); err != nil {
			return err
		}
		return s.dialect.remove(ctx, name)
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
	if err := s.dialect.close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// call runs one call of the dialect and makes its error fit for people.
func (s *Store) call(ctx context.Context, do func() error) error {
	if s.closed.Load() {
		return leaf.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	err := do()
	if err == nil {
		return nil
	}
	err = s.dialect.explain(err)
	if cause := ctx.Err(); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// knowable reports a name that no tag can have, without asking the database.
func knowable(name string) error {
	if err := segment.CheckTagName(name); err != nil {
		return fmt.Errorf("%w: %w", leaf.ErrUnknownTag, err)
	}
	return nil
}

// amend applies change to tag, all or nothing.
func amend(tag *segment.Tag, change segment.Change) error {
	if change.MaxID != nil && *change.MaxID < tag.MaxID && !change.Force {
		return fmt.Errorf("%w: max_id is %d, not to be lowered to %d", leaf.ErrRegression, tag.MaxID, *change.MaxID)
	}
	if change.MaxID != nil {
		tag.MaxID = *change.MaxID
	}
	if change.Step != nil {
		tag.Step = *change.Step
	}
	if change.Description != nil {
		tag.Description = *change.Description
	}
	return nil
}

// checkTags reports why tags cannot be created together.
func checkTags(tags []segment.Tag) error {
	seen := make(map[string]bool, len(tags))
	for _, tag := range tags {
		if err := tag.Check(); err != nil {
			return fmt.Errorf("tag %q: %w", tag.Name, err)
		}
		if seen[tag.Name] {
			return fmt.Errorf("tag %q: %w: it is named twice", tag.Name, leaf.ErrInvalid)
		}
		seen[tag.Name] = true
	}
	return nil
}

var errMovedOn = errors.New("the counter has moved on, or the tag is gone")
