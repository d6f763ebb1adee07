package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store    = (*Store)(nil)
	_ segment.Returner = (*Store)(nil)
	_ segment.Catalog  = (*Store)(nil)
)

// A Store keeps tags in etcd. It is a [segment.Store], a [segment.Returner] and a
// [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct {
	client  *client
	work    sync.WaitGroup
	skipped sync.Map // names that were logged because they cannot be a tag's

	mu     sync.Mutex
	closed bool
	lines  map[string]*line
}

// Open returns a store in the etcd whose members have the given endpoints, host:port
// each. It does not connect: what is wrong shows at the first call. The error wraps
// [leaf.ErrInvalid] if an argument is malformed.
func Open(endpoints []string, opts *Options) (*Store, error) {
	c, err := newClient(endpoints, opts.withDefaults(), tagKind())
	if err != nil {
		return nil, fmt.Errorf("open etcd store: %w", err)
	}
	return &Store{client: c, lines: make(map[string]*line)}, nil
}

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	var grant segment.Grant
	err := s.client.attempt(ctx, func() (err error) {
		if n < 0 {
			return fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
		}
		if err := knowable(tag); err != nil {
			return err
		}
		grant, err = s.advance(ctx, tag, n)
		return err
	})
	if err != nil {
		return segment.Grant{}, fmt.Errorf("advance %q: %w", tag, err)
	}
	return grant, nil
}

func (s *Store) advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	c := &call{ctx: ctx, n: n, done: make(chan outcome, 1)}
	if err := s.join(tag, c); err != nil {
		return segment.Grant{}, err
	}
	select {
	case o := <-c.done:
		return o.grant, o.err
	case <-ctx.Done():
		return segment.Grant{}, fmt.Errorf("etcd at %s has not answered yet: %w", s.client, ctx.Err())
	}
}

// Return moves tag's counter back to start if its key still holds, at the same revision,
// what the grant wrote. The transaction is sent once.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	unused := leaf.Range{Start: start, End: last.Range.End}
	err := s.client.attempt(ctx, func() error {
		if unused.Empty() || unused.Start < 0 {
			return leaf.ErrInvalid
		}
		if err := knowable(tag); err != nil {
			return err
		}
		return s.giveBack(ctx, s.client.folder+tag, last.Version, unused)
	})
	if err != nil {
		return fmt.Errorf("return %v of %q: %w", unused, tag, err)
	}
	return nil
}

var errMovedOn = errors.New("the counter was written by others since")

func (s *Store) giveBack(ctx context.Context, key, version string, unused leaf.Range) error {
	was, err := parseVersion(version)
	if err != nil {
		return err
	}
	state, err := readTag(key, was)
	if err != nil {
		return err
	}
	if state.MaxID != unused.End {
		return fmt.Errorf("%w, and stood at %d", errMovedOn, state.MaxID)
	}
	state.MaxID = unused.Start
	moved, _, err := s.client.put(ctx, key, was, state.written())
	if err == nil && !moved {
		return errMovedOn
	}
	return err
}

// The keys that a listing reads at once: few at first, because a probe wants but one.
const (
	firstPage = 16
	maxPage   = 512
)

// Tags lists all tags by name, some at a time, each page as it is when it is read. A
// tag that exists from first to last is listed once. A key whose name cannot be a
// tag's is left out and logged; one that holds no counter ends the listing.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		var after *string
		for limit := int64(firstPage); ; limit = min(4*limit, maxPage) {
			tags, last, err := s.tags(ctx, after, limit)
			for _, tag := range tags {
				if !yield(tag, nil) {
					return
				}
			}
			if err != nil {
				yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
				return
			}
			if last == nil {
				return
			}
			after = last
		}
	}
}

// tags returns the tags of a page, and the name at its end if more may follow.
func (s *Store) tags(ctx context.Context, after *string, limit int64) (tags []segment.Tag, last *string, err error) {
	err = s.client.attempt(ctx, func() error {
		page, err := s.client.page(ctx, after, limit)
		for _, kv := range page {
			name := string(kv.Key[len(s.client.folder):])
			if last = &name; !s.listable(name) {
				continue
			}
			t, err := readTag(string(kv.Key), held{string(kv.Value), kv.ModRevision})
			if err != nil {
				return err
			}
			tags = append(tags, t.tag(name))
		}
		if int64(len(page)) < limit {
			last = nil
		}
		return err
	})
	return tags, last, err
}

// listable reports whether a tag can have that name, and logs one that cannot once.
func (s *Store) listable(name string) bool {
	err := segment.CheckTagName(name)
	if err != nil {
		if _, known := s.skipped.LoadOrStore(name, true); !known {
			s.client.logger.Warn("key left out of the tags: delete it", "key", s.client.folder+name, "err", err)
		}
	}
	return err == nil
}

// Create adds a tag; the time of its last change is this machine's.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	err := s.client.attempt(ctx, func() error {
		if err := tag.Check(); err != nil {
			return err
		}
		created, _, err := s.client.put(ctx, s.client.folder+tag.Name, held{}, newTagText(tag).written())
		if err == nil && !created {
			return leaf.ErrTagExists
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("create tag %q: %w", tag.Name, err)
	}
	return nil
}

// Alter changes a tag and returns it as it then is.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := s.client.attempt(ctx, func() error {
		if err := cmp.Or(change.Check(), knowable(name)); err != nil {
			return err
		}
		return s.edit(ctx, name, func(was held) (bool, held, error) {
			state, err := readTag(s.client.folder+name, was)
			if err == nil {
				err = state.amend(change)
			}
			if err != nil {
				return false, held{}, err
			}
			changed, now, err := s.client.put(ctx, s.client.folder+name, was, state.written())
			if changed {
				state, err = readTag(s.client.folder+name, now)
				tag = state.tag(name)
			}
			return changed, now, err
		})
	})
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	return tag, nil
}

// Delete removes a tag.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := s.client.attempt(ctx, func() error {
		if err := knowable(name); err != nil {
			return err
		}
		return s.edit(ctx, name, func(was held) (bool, held, error) {
			if was.revision == 0 {
				return false, held{}, leaf.ErrUnknownTag
			}
			key := s.client.folder + name
			done, now, _, err := s.client.change(ctx, key, was, "", txn{then: []clientv3.Op{clientv3.OpDelete(key), clientv3.OpDelete(s.client.late(name))}})
			return done, now, err
		})
	})
	if err != nil {
		return fmt.Errorf("delete tag %q: %w", name, err)
	}
	return nil
}

// edit has write replace what the key of a tag holds, anew whenever somebody else came
// first: at once, because an operator waits, and there are not many of them.
func (s *Store) edit(ctx context.Context, name string, write func(was held) (done bool, now held, err error)) error {
	was, err := s.client.load(ctx, s.client.folder+name)
	for done := false; err == nil && !done; {
		done, was, err = write(was)
	}
	return err
}

// Close ends the connections. Calls that wait fail with an error that wraps
// [leaf.ErrClosed], as later calls do.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	err := s.client.close()
	s.work.Wait()
	if err != nil {
		return fmt.Errorf("close etcd store: %w", err)
	}
	return nil
}

// knowable reports a name that no tag can have, without asking etcd.
func knowable(name string) error {
	if err := segment.CheckTagName(name); err != nil {
		return fmt.Errorf("%w: %w", leaf.ErrUnknownTag, err)
	}
	return nil
}
