package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

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

// OpenStore returns the store that config names. It does not connect: what is wrong
// with the server shows at the first call, and each call looks anew until all is well.
// The error wraps [leaf.ErrInvalid].
func OpenStore(config Config, opts *Options) (*Store, error) {
	c, err := newClient(config, opts.logger())
	if err != nil {
		return nil, fmt.Errorf("open redis store: %w", err)
	}
	return &Store{client: c}, nil
}

func (s *Store) marker() string            { return s.client.config.key(storeUse().marker) }
func (s *Store) index() string             { return s.client.config.key("tags") }
func (s *Store) counter(tag string) string { return s.client.config.key("alloc:" + tag) }

// do runs a command on a tag, whose marker it adds, and fails unless the answer is ok.
func (s *Store) do(ctx context.Context, tag string, cmd command) (answer, error) {
	cmd.keys = append([]string{s.marker()}, cmd.keys...)
	a, err := s.client.run(ctx, cmd)
	if err != nil {
		return answer{}, err
	}
	detail := ""
	if len(a.rest) > 0 {
		detail = a.rest[0]
	}
	switch a.status {
	case answerOK:
		return a, nil
	case answerUnknown:
		return answer{}, leaf.ErrUnknownTag
	case answerExists:
		return answer{}, leaf.ErrTagExists
	case answerMoved:
		return answer{}, errMovedOn
	case answerServer:
		return answer{}, errTakenOver
	case answerOverflow:
		return answer{}, fmt.Errorf("%w: the counter stands at %s", leaf.ErrOverflow, detail)
	case answerBelow:
		return answer{}, fmt.Errorf("%w: max_id is %s", leaf.ErrRegression, detail)
	}
	return answer{}, s.client.failed(storeUse(), a, s.counter(tag))
}

var (
	errMovedOn   = errors.New("the counter was written by others since, or the tag is gone")
	errTakenOver = errors.New("another server has taken over since the range was granted, or the server was started again")
)

// Advance moves tag's counter forward by n, or by the tag's step if n is 0.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	grant, err := attempt(ctx, s.client, func() (segment.Grant, error) {
		if n < 0 {
			return segment.Grant{}, fmt.Errorf("%w: %d IDs", leaf.ErrInvalid, n)
		}
		if err := segment.CheckKnown(tag); err != nil {
			return segment.Grant{}, err
		}
		a, err := s.do(ctx, tag, command{script: s.client.scripts.advance, keys: []string{s.counter(tag)}, args: []any{n}, confirm: true})
		if err != nil {
			return segment.Grant{}, err
		}
		return a.grant(n)
	})
	if err != nil {
		return segment.Grant{}, fmt.Errorf("advance %q: %w", tag, err)
	}
	return grant, nil
}

// grant reads the answer to an Advance by n: where the counter stands, by how much it
// went forward, the step, what the server says of its replicas, and when it wrote.
func (a answer) grant(n int64) (segment.Grant, error) {
	if len(a.rest) != 6 {
		return segment.Grant{}, errMalformed
	}
	end, err1 := strconv.ParseInt(a.rest[0], 10, 64)
	by, err2 := strconv.ParseInt(a.rest[1], 10, 64)
	if err := cmp.Or(err1, err2); err != nil {
		return segment.Grant{}, err
	}
	if by < 1 || by > end || n > 0 && by != n {
		return segment.Grant{}, errMalformed
	}
	step, err := strconv.ParseInt(a.rest[2], 10, 64)
	if err != nil || step < 1 {
		step = 1 // damaged, which an Advance by a number of its own need not mind
	}
	g := segment.Grant{Range: leaf.Range{Start: end - by, End: end}, Step: step, Server: a.facts.reign, Version: a.facts.replid + " " + a.rest[5]}
	if a.facts.lossless() && !replicated(a.rest[3], a.rest[4]) {
		g.Server = ""
	}
	return g, nil
}

var errMalformed = errors.New("the server's answer is malformed")

// Return moves tag's counter back to start if the grant was its last write, as the time
// of that write says, on the server that made it: one that has taken over without knowing
// of it may have granted the same IDs to somebody else. The write is sent once.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	unused := leaf.Range{Start: start, End: last.Range.End}
	_, err := attempt(ctx, s.client, func() (answer, error) {
		if unused.Empty() || unused.Start < 0 {
			return answer{}, leaf.ErrInvalid
		}
		if err := segment.CheckKnown(tag); err != nil {
			return answer{}, err
		}
		server, written, _ := strings.Cut(last.Version, " ")
		if server == "" {
			return answer{}, fmt.Errorf("%w: %q is no version of a grant", leaf.ErrInvalid, last.Version)
		}
		return s.do(ctx, tag, command{script: s.client.scripts.giveBack, keys: []string{s.counter(tag)},
			args: []any{start, last.Range.End, written}, server: server})
	})
	if err != nil {
		return fmt.Errorf("return %v of %q: %w", unused, tag, err)
	}
	return nil
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
			p, err := attempt(ctx, s.client, func() (page, error) { return s.page(ctx, from, limit) })
			if err != nil {
				yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
				return
			}
			for _, tag := range p.tags {
				if !yield(tag, nil) {
					return
				}
			}
			if p.next == "" {
				return
			}
			from = p.next
		}
	}
}

// A page is a part of the listing; next is where the following one begins, empty
// behind the last.
type page struct {
	tags []segment.Tag
	next string
}

func (s *Store) page(ctx context.Context, from string, limit int) (page, error) {
	a, err := s.do(ctx, "", command{script: s.client.scripts.names, keys: []string{s.index()}, args: []any{from, limit}})
	if err != nil || len(a.rest) == 0 {
		return page{}, err
	}
	names := a.rest
	keys := make([]string, len(names))
	for i, name := range names {
		keys[i] = s.counter(name)
	}
	if a, err = s.do(ctx, "", command{script: s.client.scripts.rows, keys: keys}); err != nil {
		return page{}, err
	}
	if len(a.rest) != 4*len(names) {
		return page{}, errMalformed
	}
	var p page
	for i, name := range names {
		row := a.rest[4*i : 4*i+4]
		if row[0] == "" && row[1] == "" {
			continue // deleted meanwhile
		}
		p.tags = append(p.tags, readTag(name, row))
	}
	if len(names) == limit {
		p.next = "(" + names[limit-1]
	}
	return p, nil
}

// readTag reads max_id, step, description and the time of the last change.
func readTag(name string, row []string) segment.Tag {
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0
		}
		return n
	}
	tag := segment.Tag{Name: name, MaxID: number(row[0]), Step: number(row[1]), Description: row[2]}
	if us := number(row[3]); us > 0 {
		tag.Updated = time.UnixMicro(us)
	}
	return tag
}

// Create adds a tag.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	_, err := attempt(ctx, s.client, func() (answer, error) {
		if err := tag.Check(); err != nil {
			return answer{}, err
		}
		return s.do(ctx, tag.Name, command{script: s.client.scripts.create, keys: []string{s.counter(tag.Name), s.index()},
			args: []any{tag.Name, tag.MaxID, tag.Step, tag.Description}, confirm: true})
	})
	if err != nil {
		return fmt.Errorf("create tag %q: %w", tag.Name, err)
	}
	return nil
}

// Alter changes a tag and returns it as it then is.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	tag, err := attempt(ctx, s.client, func() (segment.Tag, error) {
		if err := cmp.Or(change.Check(), segment.CheckKnown(name)); err != nil {
			return segment.Tag{}, err
		}
		a, err := s.do(ctx, name, command{script: s.client.scripts.alter, keys: []string{s.counter(name)}, args: alterArgs(change), confirm: true})
		if err != nil {
			return segment.Tag{}, err
		}
		if len(a.rest) != 4 {
			return segment.Tag{}, errMalformed
		}
		return readTag(name, a.rest), nil
	})
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	return tag, nil
}

func alterArgs(change segment.Change) []any {
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
	return args
}

// Delete removes a tag.
func (s *Store) Delete(ctx context.Context, name string) error {
	_, err := attempt(ctx, s.client, func() (answer, error) {
		if err := segment.CheckKnown(name); err != nil {
			return answer{}, err
		}
		return s.do(ctx, name, command{script: s.client.scripts.remove, keys: []string{s.counter(name), s.index()}, args: []any{name}, confirm: true})
	})
	if err != nil {
		return fmt.Errorf("delete tag %q: %w", name, err)
	}
	return nil
}

// Close ends the connections. Later calls fail with an error that wraps [leaf.ErrClosed].
func (s *Store) Close() error { return s.client.close() }
