package redis

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

var (
	_ segment.Store    = (*Store)(nil)
	_ segment.Returner = (*Store)(nil)
	_ segment.Catalog  = (*Store)(nil)
)

// A Store keeps tags in a Redis. It is a [segment.Store], a [segment.Returner] and a
// [segment.Catalog]. Its methods are safe for concurrent use.
type Store struct{ client *client }

func (s *Store) marker() string            { return s.client.config.key("format") }
func (s *Store) index() string             { return s.client.config.key("tags") }
func (s *Store) counter(tag string) string { return s.client.config.key("alloc:" + tag) }

// Exists reports whether [DB.Init] has created the store, by whatever release.
func (s *Store) Exists(ctx context.Context) (bool, error) {
	a, err := s.client.run(ctx, command{script: existsScript, keys: []string{s.marker()}})
	return err == nil && len(a.values) == 1 && a.values[0] != "", err
}

// change returns a command that changes a tag.
func (s *Store) change(script *goredis.Script, tag string, args ...any) command {
	return command{script: script, keys: []string{s.marker(), s.counter(tag), s.index()}, args: args, confirm: true}
}

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := s.advance(ctx, tag, n)
	return grant, wrap(err, "advance %q", tag)
}

func (s *Store) advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	if n < 0 {
		return segment.Grant{}, fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
	}
	if err := segment.CheckKnown(tag); err != nil {
		return segment.Grant{}, err
	}
	a, err := s.client.run(ctx, s.change(advanceScript, tag, n))
	if err != nil {
		return segment.Grant{}, err
	}
	return a.grant(n)
}

// grant reads the answer to an Advance by n: where the counter stands, by how much it
// went forward, the step, what the server says of its replicas, and when it wrote.
func (a answer) grant(n int64) (segment.Grant, error) {
	if len(a.values) != 6 {
		return segment.Grant{}, errMalformed
	}
	end, err1 := strconv.ParseInt(a.values[0], 10, 64)
	by, err2 := strconv.ParseInt(a.values[1], 10, 64)
	if err := cmp.Or(err1, err2); err != nil {
		return segment.Grant{}, err
	}
	if by < 1 || by > end || n > 0 && by != n {
		return segment.Grant{}, errMalformed
	}
	g := segment.Grant{Range: leaf.Range{Start: end - by, End: end}, Step: max(1, number(a.values[2])), // an Advance by n need not mind its damage
		Server: a.facts.timeline, Version: a.facts.replid + " " + a.values[5]}
	if a.facts.lossless() && !replicated(a.values[3], a.values[4]) {
		g.Server = ""
	}
	return g, nil
}

// Return moves tag's counter back to start if the grant was its last write, as the time
// of that write says, on the server that made it: one that has taken over without knowing
// of it may have granted the same IDs to another client. The write is sent once.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	unused := leaf.Range{Start: start, End: last.Range.End}
	server, written, _ := strings.Cut(last.Version, " ")
	err := segment.CheckKnown(tag)
	if unused.Empty() || start < 0 || server == "" {
		err = fmt.Errorf("%w: no such grant: %+v", leaf.ErrInvalid, last)
	}
	if err == nil {
		_, err = s.client.run(ctx, command{script: returnScript, keys: []string{s.marker(), s.counter(tag)},
			args: []any{start, last.Range.End, written}, server: server})
	}
	return wrap(err, "return %v of %q", unused, tag)
}

// The tags that a listing reads at once: few at first, because a probe wants but one.
const (
	firstPage = 16
	maxPage   = 512
)

// Tags lists all tags by name, some at a time. A tag that exists from first to last
// is listed once; values that are missing are zero.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		from := "-"
		for limit := firstPage; ; limit = min(4*limit, maxPage) {
			names, tags, err := s.page(ctx, from, limit)
			if err != nil {
				yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
				return
			}
			for _, tag := range tags {
				if !yield(tag, nil) {
					return
				}
			}
			if len(names) < limit {
				return
			}
			from = "(" + names[limit-1]
		}
	}
}

// page returns some names, and the tags of those that are not deleted meanwhile.
func (s *Store) page(ctx context.Context, from string, limit int) (names []string, tags []segment.Tag, err error) {
	a, err := s.client.run(ctx, command{script: namesScript, keys: []string{s.marker(), s.index()}, args: []any{from, limit}})
	if err != nil || len(a.values) == 0 {
		return nil, nil, err
	}
	names = a.values
	keys := []string{s.marker()}
	for _, name := range names {
		keys = append(keys, s.counter(name))
	}
	a, err = s.client.run(ctx, command{script: rowsScript, keys: keys})
	if err != nil || len(a.values) != 4*len(names) {
		return nil, nil, cmp.Or(err, errMalformed)
	}
	for i, name := range names {
		if row := a.values[4*i : 4*i+4]; row[0]+row[1] != "" {
			tags = append(tags, readTag(name, row))
		}
	}
	return names, tags, nil
}

// readTag reads max_id, step, description and the time of the last change.
func readTag(name string, row []string) segment.Tag {
	tag := segment.Tag{Name: name, MaxID: number(row[0]), Step: number(row[1]), Description: row[2]}
	if us := number(row[3]); us > 0 {
		tag.Updated = time.UnixMicro(us)
	}
	return tag
}

// number returns 0 for what is none.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Create adds a tag.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	err := tag.Check()
	if err == nil {
		_, err = s.client.run(ctx, s.change(createScript, tag.Name, tag.Name, tag.MaxID, tag.Step, tag.Description))
	}
	return wrap(err, "create tag %q", tag.Name)
}

// Alter changes a tag and returns it as it then is.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	tag, err := s.alter(ctx, name, change)
	return tag, wrap(err, "alter tag %q", name)
}

func (s *Store) alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	if err := cmp.Or(change.Check(), segment.CheckKnown(name)); err != nil {
		return segment.Tag{}, err
	}
	args := []any{"", "", "0", "", "0"}
	if change.MaxID != nil {
		args[0] = *change.MaxID
	}
	if change.Step != nil {
		args[1] = *change.Step
	}
	if change.Description != nil {
		args[2], args[3] = "1", *change.Description
	}
	if change.Force {
		args[4] = "1"
	}
	a, err := s.client.run(ctx, s.change(alterScript, name, args...))
	if err != nil || len(a.values) != 4 {
		return segment.Tag{}, cmp.Or(err, errMalformed)
	}
	return readTag(name, a.values), nil
}

// Delete removes a tag.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := segment.CheckKnown(name)
	if err == nil {
		_, err = s.client.run(ctx, s.change(deleteScript, name, name))
	}
	return wrap(err, "delete tag %q", name)
}
