// Package memory is a store of tags and a registry of workers in the memory of this
// process: for tests, and for IDs that need to be unique only while the process runs.
// Nothing outlives it.
package memory

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store    = (*Store)(nil)
	_ segment.Returner = (*Store)(nil)
	_ segment.Catalog  = (*Store)(nil)
)

// A Store keeps tags in memory. It is a [segment.Store], a [segment.Returner] and a
// [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct {
	mu       sync.Mutex
	tags     map[string]segment.Tag
	writes   int64            // of all tags
	versions map[string]int64 // by tag: which of the writes was its last
}

// New returns a Store without any tag.
func New() *Store {
	return &Store{tags: make(map[string]segment.Tag), versions: make(map[string]int64)}
}

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if n < 0 {
		return segment.Grant{}, fmt.Errorf("advance %q: %w: %d IDs", tag, leaf.ErrInvalid, n)
	}
	var grant segment.Grant
	_, err := s.change(ctx, tag, func(t *segment.Tag) error {
		if n == 0 {
			n = t.Step
		}
		if n > math.MaxInt64-t.MaxID {
			return fmt.Errorf("%w: %d IDs from %d", leaf.ErrOverflow, n, t.MaxID)
		}
		grant = segment.Grant{Range: leaf.Range{Start: t.MaxID, End: t.MaxID + n}, Step: t.Step, Version: formatVersion(s.writes + 1)}
		t.MaxID += n
		return nil
	})
	if err != nil {
		return segment.Grant{}, fmt.Errorf("advance %q: %w", tag, err)
	}
	return grant, nil
}

// Return moves tag's counter back to start if last was the counter's last write.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	unused := leaf.Range{Start: start, End: last.Range.End}
	if unused.Empty() || unused.Start < 0 {
		return fmt.Errorf("return %v of %q: %w", unused, tag, leaf.ErrInvalid)
	}
	_, err := s.change(ctx, tag, func(t *segment.Tag) error {
		if t.MaxID != unused.End || formatVersion(s.versions[tag]) != last.Version {
			return fmt.Errorf("the counter has moved on to %d", t.MaxID)
		}
		t.MaxID = start
		return nil
	})
	if err != nil {
		return fmt.Errorf("return %v of %q: %w", unused, tag, err)
	}
	return nil
}

// Tags lists all tags by name, as they are when the listing begins.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		for _, tag := range s.sorted() {
			if err := ctx.Err(); err != nil {
				yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
				return
			}
			if !yield(tag, nil) {
				return
			}
		}
	}
}

func (s *Store) sorted() []segment.Tag {
	s.mu.Lock()
	defer s.mu.Unlock()
	tags := make([]segment.Tag, 0, len(s.tags))
	for _, tag := range s.tags {
		tags = append(tags, tag)
	}
	slices.SortFunc(tags, func(a, b segment.Tag) int { return strings.Compare(a.Name, b.Name) })
	return tags
}

// Create adds a tag; its Updated becomes the present time.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	if err := cmp.Or(ctx.Err(), tag.Check()); err != nil {
		return fmt.Errorf("create tag %q: %w", tag.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tags[tag.Name]; ok {
		return fmt.Errorf("create tag %q: %w", tag.Name, leaf.ErrTagExists)
	}
	s.write(tag)
	return nil
}

// Alter changes a tag and returns it as it then is.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	if err := change.Check(); err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	tag, err := s.change(ctx, name, func(t *segment.Tag) error {
		if change.MaxID != nil {
			if *change.MaxID < t.MaxID && !change.Force {
				return fmt.Errorf("%w: max_id is %d, not to be lowered to %d", leaf.ErrRegression, t.MaxID, *change.MaxID)
			}
			t.MaxID = *change.MaxID
		}
		if change.Step != nil {
			t.Step = *change.Step
		}
		if change.Description != nil {
			t.Description = *change.Description
		}
		return nil
	})
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	return tag, nil
}

// Delete removes a tag.
func (s *Store) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete tag %q: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tags[name]; !ok {
		return fmt.Errorf("delete tag %q: %w", name, leaf.ErrUnknownTag)
	}
	delete(s.tags, name)
	delete(s.versions, name)
	return nil
}

// change applies edit to one tag, all or nothing, and returns the tag as it then is.
func (s *Store) change(ctx context.Context, name string, edit func(*segment.Tag) error) (segment.Tag, error) {
	if err := ctx.Err(); err != nil {
		return segment.Tag{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tag, ok := s.tags[name]
	if !ok {
		return segment.Tag{}, leaf.ErrUnknownTag
	}
	if err := edit(&tag); err != nil {
		return segment.Tag{}, err
	}
	return s.write(tag), nil
}

// write stores a tag as of now; s.mu is held.
func (s *Store) write(tag segment.Tag) segment.Tag {
	s.writes++
	s.versions[tag.Name] = s.writes
	tag.Updated = time.Now()
	s.tags[tag.Name] = tag
	return tag
}

func formatVersion(write int64) string { return strconv.FormatInt(write, 10) }
