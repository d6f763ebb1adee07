package sqldb

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
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store    = (*Store)(nil)
	_ segment.Returner = (*Store)(nil)
	_ segment.Lister   = (*Store)(nil)
	_ segment.Digester = (*Store)(nil)
	_ segment.Catalog  = (*Store)(nil)

	_ segment.StrictStore   = (*Store)(nil)
	_ segment.MaskedStore   = (*Store)(nil)
	_ segment.PeriodCatalog = (*Store)(nil)
)

// A Store keeps tags in a database. It is a [segment.Store], a [segment.Returner],
// a [segment.Lister] and a [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct {
	handle
	db      sqlstore.Counters
	logger  *slog.Logger
	skipped sync.Map // invalid names, each logged once
}

// A handle is the common part of a store and a registry.
type handle struct {
	db     sqlstore.Access
	name   string // for errors
	closed atomic.Bool
}

// Close is [DB.Close] for one of the two.
func (h *handle) Close() error {
	if !h.closed.Swap(true) {
		h.db.Close()
	}
	return nil
}

// call makes a call; its error begins with what. An error comes without an answer.
func call[T any](ctx context.Context, h *handle, what string, do func() (T, error)) (T, error) {
	var answer T
	err := sqlstore.Attempt(ctx, &h.closed, h.db.Explain, func() (err error) {
		answer, err = do()
		return err
	})
	if err != nil {
		return *new(T), fmt.Errorf("%s: %w", what, err)
	}
	return answer, nil
}

// act is call without an answer.
func act(ctx context.Context, h *handle, what string, do func() error) error {
	_, err := call(ctx, h, what, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

// in runs do with a method of an [Access].
func in[T any](ctx context.Context, run func(context.Context, func(*sqlstore.Session) error) error, do func(*sqlstore.Session) (T, error)) (T, error) {
	var answer T
	err := run(ctx, func(s *sqlstore.Session) (err error) {
		answer, err = do(s)
		return err
	})
	if err != nil {
		return *new(T), err // not answer: do may still be writing to it
	}
	return answer, nil
}

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := sqlstore.Attempt(ctx, &s.closed, s.handle.db.Explain, func() (err error) {
		if n < 0 {
			return fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
		}
		if err := segment.CheckKnown(tag); err != nil {
			return err
		}
		grant, err = s.db.Advance(ctx, tag, n)
		return err
	})
	if err == nil {
		return grant, nil
	}
	what := fmt.Sprintf("advance %q", tag)
	if errors.Is(err, leaf.ErrOverflow) { // PostgreSQL reports it before it knows the order
		if stockless := act(ctx, &s.handle, what, func() error {
			return s.db.Do(ctx, func(db *sqlstore.Session) error { return db.Stockless(tag) })
		}); stockless != nil {
			return segment.Grant{}, stockless
		}
	}
	return segment.Grant{}, fmt.Errorf("%s: %w", what, err)
}

// AdvanceStrict moves the counter of a tag with strict order, or of a period, forward by n.
func (s *Store) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	return s.advanceStrict(ctx, tag, period, false, n)
}

// AdvanceMasked moves the counter of a tag with a mask forward by n.
func (s *Store) AdvanceMasked(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.advanceStrict(ctx, tag, "", true, n)
}

func (s *Store) advanceStrict(ctx context.Context, tag, period string, masked bool, n int64) (segment.Grant, error) {
	return call(ctx, &s.handle, fmt.Sprintf("advance %q", tag), func() (segment.Grant, error) {
		if n < 1 {
			return segment.Grant{}, fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
		}
		if err := segment.CheckKnown(tag); err != nil {
			return segment.Grant{}, err
		}
		return in(ctx, s.db.Transact, func(db *sqlstore.Session) (segment.Grant, error) { return db.AdvanceStrict(tag, period, masked, n) })
	})
}

// Return moves tag's counter back to start if the grant was its last write, as the time
// of that write and the server say.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	unused := leaf.Range{Start: start, End: last.Range.End}
	return act(ctx, &s.handle, fmt.Sprintf("return %v of %q", unused, tag), func() error {
		if unused.Empty() || unused.Start < 0 {
			return leaf.ErrInvalid
		}
		if err := segment.CheckKnown(tag); err != nil {
			return err
		}
		return s.db.Return(ctx, tag, last, start)
	})
}

// Tags lists all tags by name. It reads page by page and holds nothing of the database in between,
// so a slow reader does not hold up other calls. A tag that exists from first to last appears once.
// Tags leaves out and logs a row with an invalid name. Missing values are zero.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return s.list(ctx, (*sqlstore.Session).Tags)
}

// Steps is Tags without the counters and the descriptions.
func (s *Store) Steps(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return s.list(ctx, (*sqlstore.Session).Steps)
}

// Digest returns a hash of all names, steps and options. The database joins the rows, which costs a tenth of
// reading them one by one. Empty: the database cannot.
func (s *Store) Digest(ctx context.Context) (string, error) {
	return call(ctx, &s.handle, "compare tags", func() (string, error) {
		return in(ctx, s.db.Do, (*sqlstore.Session).Digest)
	})
}

// list lists what read reads, page by page.
func (s *Store) list(ctx context.Context, read func(db *sqlstore.Session, after *string, limit int) ([]segment.Tag, error)) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		var after *string
		for limit := firstPage; ; limit = min(4*limit, maxPage) {
			tags, err := call(ctx, &s.handle, "list tags", func() ([]segment.Tag, error) {
				return in(ctx, s.db.Do, func(db *sqlstore.Session) ([]segment.Tag, error) { return read(db, after, limit) })
			})
			if err != nil {
				yield(segment.Tag{}, err)
				return
			}
			for _, tag := range tags {
				if s.listable(tag.Name) && !yield(tag, nil) {
					return
				}
			}
			if len(tags) < limit {
				return
			}
			after = &tags[limit-1].Name
		}
	}
}

// The rows that a listing reads at once: few at first, because a probe wants only one. To open
// a connection for a page costs SQLite as much as some hundred rows.
const (
	firstPage = 16
	maxPage   = sqlstore.MaxPage
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

// Create adds a tag; the time of its last change is the database's. It starts where a deleted tag
// of the name ended, or above.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	_, err := change(ctx, s, "create", tag.Name, tag.Check(), func(db *sqlstore.Session) (none struct{}, err error) {
		return none, db.Create(tag)
	})
	return err
}

// Alter changes a tag and returns it as it then is.
func (s *Store) Alter(ctx context.Context, name string, c segment.Change) (segment.Tag, error) {
	return change(ctx, s, "alter", name, cmp.Or(c.Check(), segment.CheckKnown(name)), func(db *sqlstore.Session) (segment.Tag, error) {
		return db.Alter(name, c)
	})
}

// Delete removes a tag. The table leaf_deleted keeps its counter.
func (s *Store) Delete(ctx context.Context, name string) error {
	_, err := change(ctx, s, "delete", name, segment.CheckKnown(name), func(db *sqlstore.Session) (none struct{}, err error) {
		return none, db.Remove(name)
	})
	return err
}

// Periods lists the periods of a tag.
func (s *Store) Periods(ctx context.Context, tag string) ([]segment.Period, error) {
	return call(ctx, &s.handle, fmt.Sprintf("list the periods of %q", tag), func() ([]segment.Period, error) {
		return in(ctx, s.db.Do, func(db *sqlstore.Session) ([]segment.Period, error) { return db.Periods(tag) })
	})
}

// RemovePeriod removes a period. The table leaf_deleted keeps its counter.
func (s *Store) RemovePeriod(ctx context.Context, tag, period string) error {
	_, err := change(ctx, s, "remove the period "+period+" of", tag, segment.CheckKnown(tag), func(db *sqlstore.Session) (none struct{}, err error) {
		return none, db.RemovePeriod(tag, period)
	})
	return err
}

// change makes a change in a transaction, unless it is invalid. It creates the tables that the change
// lacks.
func change[T any](ctx context.Context, s *Store, what, name string, invalid error, do func(*sqlstore.Session) (T, error)) (T, error) {
	what = fmt.Sprintf("%s tag %q", what, name)
	once := func() (T, error) {
		if invalid != nil {
			return *new(T), invalid
		}
		return in(ctx, s.db.Transact, do)
	}
	var lacked error // the last missing table
	var failed error // why it could not be created
	for {
		answer, err := call(ctx, &s.handle, what, once)
		missing, ok := errors.AsType[sqlstore.MissingTable](err)
		switch {
		case !ok:
			return answer, err
		case missing == lacked: // else another process created it
			return answer, cmp.Or(failed, err)
		}
		lacked = missing
		failed = act(ctx, &s.handle, what, func() error {
			return s.db.Transact(ctx, func(db *sqlstore.Session) error { return db.CreateTable(missing) })
		})
	}
}
