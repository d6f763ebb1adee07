package relay

import (
	"context"
	"iter"

	"github.com/leaf-id/leaf/segment"
)

// Expect says which store the servers must have; see [segment.Expecter].
func (s *Store) Expect(identity string) { s.servers.Expect(identity) }

// Advance takes a range of up to n IDs, or of up to the tag's step if n is 0. An error may have
// cost IDs.
func (s *Store) Advance(ctx context.Context, tag string, n int64) (segment.Grant, error) {
	return s.servers.Advance(ctx, tag, n)
}

// Return gives the unused end of a grant back to the server that it came from.
func (s *Store) Return(ctx context.Context, tag string, last segment.Grant, start int64) error {
	return s.servers.Return(ctx, tag, last, start)
}

// Tags lists the tags of the servers' store.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] { return s.servers.Tags(ctx) }

// Create adds a tag.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	return s.servers.Create(ctx, tag)
}

// Alter changes a tag and returns it. A raised max_id counts at once: the server drops its stock
// below.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	return s.servers.Alter(ctx, name, change)
}

// Delete removes a tag.
func (s *Store) Delete(ctx context.Context, name string) error { return s.servers.Delete(ctx, name) }

// ObserveTag tells the servers that IDs of a tag up to largest are in use: they issue higher ones
// only.
func (s *Store) ObserveTag(ctx context.Context, tag string, largest int64) (now segment.Tag, othersBelow int64, err error) {
	return s.servers.ObserveTag(ctx, tag, largest)
}

// RaiseTag raises the counter of a tag by n.
func (s *Store) RaiseTag(ctx context.Context, tag string, n int64) (segment.Tag, error) {
	return s.servers.RaiseTag(ctx, tag, n)
}
