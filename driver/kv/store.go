package kv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store    = (*Store)(nil)
	_ segment.Returner = (*Store)(nil)
	_ segment.Catalog  = (*Store)(nil)

	_ segment.StrictStore = (*Store)(nil)
	_ segment.MaskedStore = (*Store)(nil)
)

// A Store keeps tags in a [DB]. It is a [segment.Store], a [segment.Returner] and a
// [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct {
	db     *DB
	marker marker

	mu       sync.Mutex
	counters map[Key]*counter
}

// do makes a call once the store is known to exist.
func (s *Store) do(ctx context.Context, call func() error) error {
	return s.db.do(ctx, func() error {
		if err := s.marker.check(ctx); err != nil {
			return err
		}
		return call()
	})
}

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (grant segment.Grant, err error) {
	err = s.db.do(ctx, func() error {
		if n < 0 {
			return fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
		}
		if err := segment.CheckKnown(tag); err != nil {
			return err
		}
		if a, ok := s.db.backend.(Adder); ok {
			grant, err = s.add(ctx, a, tag, n)
		} else {
			grant, err = s.advance(ctx, tagKey(tag), &call{n: n})
		}
		return err
	})
	if err != nil {
		return segment.Grant{}, fmt.Errorf("advance %q: %w", tag, err)
	}
	return grant, nil
}

// AdvanceStrict moves the counter of a tag with strict order, or of a period, forward by n. It swaps
// the cell even where the backend could add: only the swap tells the order of the tag.
func (s *Store) AdvanceStrict(ctx context.Context, tag, period string, n int64) (segment.Grant, error) {
	return s.advanceStrict(ctx, tag, period, &call{n: n, strict: true})
}

// AdvanceMasked is AdvanceStrict for a tag with a mask.
func (s *Store) AdvanceMasked(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.advanceStrict(ctx, tag, "", &call{n: n, strict: true, masked: true})
}

func (s *Store) advanceStrict(ctx context.Context, tag, period string, c *call) (grant segment.Grant, err error) {
	err = s.db.do(ctx, func() error {
		if c.n < 1 {
			return fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, c.n)
		}
		if err := segment.CheckKnown(tag); err != nil {
			return err
		}
		if b, ok := s.db.backend.(Lossy); ok {
			epoch, err := b.ServerEpoch(ctx)
			if err != nil {
				return err
			}
			c.lossy = epoch.Lossy
		}
		grant, err = s.advanceIn(ctx, tag, period, c)
		return err
	})
	if err != nil {
		return segment.Grant{}, fmt.Errorf("advance %q: %w", tag, err)
	}
	return grant, nil
}

// add has the backend move the counter.
func (s *Store) add(ctx context.Context, a Adder, tag string, n int64) (segment.Grant, error) {
	if err := s.marker.check(ctx); err != nil {
		return segment.Grant{}, err
	}
	for {
		grant, err := s.addOnce(ctx, a, tag, n)
		if !errors.Is(err, errNoIdentity) {
			return grant, err
		}
		if err := s.identify(ctx, tag); err != nil {
			return segment.Grant{}, err
		}
	}
}

// errNoIdentity says that the cell of a tag lacks the identity of the store.
var errNoIdentity = errors.New("the cell lacks the identity of the store")

// identify restores the identity in the cell of a tag, which an older release, or an Init,
// has written. The marker is read after the cell, and the swap finds the cell unchanged: both
// belong to the same store.
func (s *Store) identify(ctx context.Context, tag string) error {
	return s.edit(ctx, tag, func(t *tagText, err error) error {
		if err == nil && t.Store == "" {
			t.Store, err = s.marker.identity(ctx)
		}
		return err
	})
}

func (s *Store) addOnce(ctx context.Context, a Adder, tag string, n int64) (segment.Grant, error) {
	cell, by, err := a.Add(ctx, tagKey(tag), n)
	if err != nil {
		return segment.Grant{}, err
	}
	if cell.Version == "" {
		return segment.Grant{}, cmp.Or(s.marker.recheck(ctx), leaf.ErrUnknownTag)
	}
	t, err := readTag(cell)
	if err == nil && t.Store == "" && (by != 0 || t.textAt(t.Updated) == cell.Value) {
		return segment.Grant{}, errNoIdentity // the moved IDs are lost
	}
	if err == nil && by == 0 {
		if err = t.checkOrder(new(call)); err == nil {
			_, err = t.advance(n)
		}
		if err == nil {
			err = damaged(cell) // in another way than this program writes it
		}
	}
	if want := cmp.Or(n, t.Step); err == nil && (by != want || by > t.MaxID) {
		err = fmt.Errorf("the counter went by %d to %d, and not by %d", by, t.MaxID, want)
	}
	if err != nil {
		return segment.Grant{}, err
	}
	return segment.Grant{Range: leaf.Range{Start: t.MaxID - by, End: t.MaxID}, Step: t.Step, Server: cell.Server, Store: t.Store, Version: cell.mark()}, nil
}

// Return moves tag's counter back to start if its cell still has the content of the grant. It sends
// the swap once. The new cell has a later time than any grant before: if only the text tells writes
// apart, the counter must not look as an earlier grant left it.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	err := s.do(ctx, func() error {
		if err := segment.CheckKnown(tag); err != nil {
			return err
		}
		cell, t, err := granted(tag, last)
		if err != nil || start < 0 || start >= t.MaxID {
			return fmt.Errorf("%w: no such grant: %w", leaf.ErrInvalid, err)
		}
		t.MaxID = start
		_, err = s.db.backend.Swap(ctx, cell, t.later())
		return err
	})
	return wrap(err, "return %v of %q", leaf.Range{Start: start, End: last.Range.End}, tag)
}

// granted returns the cell that a grant left, as its version says.
func granted(tag string, last segment.Grant) (Cell, tagText, error) {
	cell := marked(tagKey(tag), last.Version)
	cell.Server = last.Server
	t, err := readTag(cell)
	if err == nil && t.MaxID != last.Range.End {
		err = errors.New("its version is that of another range")
	}
	return cell, t, err
}

func tagKey(tag string) Key { return Key{Tags, tag} }

// Tags lists all tags, in any order.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		err := s.do(ctx, func() error { return s.list(ctx, yield) })
		if err != nil && err != errStopped {
			yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
		}
	}
}

// errStopped ends an unfinished listing.
var errStopped = errors.New("the listing was broken off")

func (s *Store) list(ctx context.Context, yield func(segment.Tag, error) bool) error {
	for cell, err := range s.db.backend.List(ctx, Tags) {
		if err != nil {
			return err
		}
		t, err := readTag(cell)
		if errors.Is(err, leaf.ErrUnknownTag) {
			continue // deleted
		}
		if err != nil {
			return err
		}
		if !yield(t.tag(cell.Key.Name), nil) {
			return errStopped
		}
	}
	return nil
}

// Create adds a tag; the time of its last change is this machine's.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	err := s.do(ctx, func() error {
		if err := tag.Check(); err != nil {
			return err
		}
		return s.create(ctx, tag)
	})
	return wrap(err, "create tag %q", tag.Name)
}

func (s *Store) create(ctx context.Context, tag segment.Tag) error {
	return s.edit(ctx, tag.Name, func(t *tagText, err error) error {
		switch {
		case err == nil:
			return leaf.ErrTagExists
		case !errors.Is(err, leaf.ErrUnknownTag):
			return err
		}
		if t.Deleted {
			if err := tag.Options.CheckNewName(t.MaxID); err != nil {
				return err
			}
		}
		tag.MaxID = max(tag.MaxID, t.MaxID)
		*t = newTagText(tag)
		t.Store, err = s.marker.identity(ctx)
		if errors.Is(err, s.marker.missing) { // Init creates the tags before the marker
			err = nil
		}
		return err
	})
}

// Alter changes a tag and returns it as it then is.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (tag segment.Tag, err error) {
	err = s.do(ctx, func() error {
		if err := cmp.Or(change.Check(), segment.CheckKnown(name)); err != nil {
			return err
		}
		return s.edit(ctx, name, func(t *tagText, damage error) error {
			err := t.alter(change, damage)
			tag = t.tag(name)
			return err
		})
	})
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	return tag, nil
}

// Delete removes a tag. Its cell stays with the counter: no version returns, and a new tag with
// that name continues above the IDs of this one.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := s.do(ctx, func() error {
		if err := segment.CheckKnown(name); err != nil {
			return err
		}
		return s.edit(ctx, name, func(t *tagText, err error) error {
			*t = tagText{Deleted: true, MaxID: t.Options.Used(t.MaxID)}
			return err
		})
	})
	return wrap(err, "delete tag %q", name)
}

// edit changes the cell of a tag. If another writer is faster, it retries at once: an operator
// waits, and operators are few. Change gets the tag, or the error of a cell without one.
func (s *Store) edit(ctx context.Context, name string, change func(*tagText, error) error) error {
	return s.editCell(ctx, tagKey(name), change)
}

func (s *Store) editCell(ctx context.Context, key Key, change func(*tagText, error) error) error {
	for {
		cell, err := s.db.backend.Get(ctx, key)
		if err != nil {
			return err
		}
		t, err := readTag(cell)
		if err := change(&t, err); err != nil {
			return err
		}
		if _, err = s.db.backend.Swap(ctx, cell, t.text()); !errors.Is(err, ErrConflict) {
			return err
		}
	}
}
