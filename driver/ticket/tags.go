package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// readTags returns the tags of a server, or the one of that name. Here MaxID is the server's next
// ID, or 0 where it deals single tickets.
func readTags(ctx context.Context, conn *sql.Conn, name ...string) ([]segment.Tag, error) {
	query, args := `SELECT name, next_id, step, description, COALESCE(UNIX_TIMESTAMP(updated), 0) FROM leaf_ticket_tag`, []any(nil)
	for _, tag := range name {
		query, args = query+` WHERE name = ?`, append(args, []byte(tag))
	}
	rows, err := conn.QueryContext(ctx, query, args...)
	return sqlstore.Collect(rows, err, func(scan func(...any) error) (tag segment.Tag, err error) {
		var updated float64
		var description string
		err = scan(&tag.Name, &tag.MaxID, &tag.Step, &description, &updated)
		tag.Options = segment.Describe(description)
		if updated > 0 {
			tag.Updated = time.UnixMicro(int64(updated * 1e6))
		}
		return tag, err
	})
}

// onlyDescribed reports options that the tables have no place for.
func onlyDescribed(o segment.TagOptions) error {
	if o.Others() != nil {
		return fmt.Errorf("%w: ticket servers keep a description, and no other option of a tag", leaf.ErrUnsupported)
	}
	return nil
}

// findTag is readTags for one tag. It fails with [leaf.ErrUnknownTag] without it.
func findTag(ctx context.Context, conn *sql.Conn, name string) (segment.Tag, error) {
	tags, err := readTags(ctx, conn, name)
	if err != nil || len(tags) == 0 {
		return segment.Tag{}, cmp.Or(err, leaf.ErrUnknownTag)
	}
	return tags[0], nil
}

// tags is readTags with the proper MaxID: one past the highest drawn ID, or 0 before the first. It
// asks a shared table once. The row of the last ticket still exists. Without the table of the
// tickets it returns the tags and an error.
func (f *facts) tags(ctx context.Context, conn *sql.Conn, name ...string) ([]segment.Tag, error) {
	tags, err := readTags(ctx, conn, name...)
	for i := range tags {
		tag := &tags[i]
		switch {
		case f.Stride > 0:
			tag.MaxID = f.drawn(tag.MaxID)
		case i > 0 && f.shared():
			tag.MaxID = tags[0].MaxID
		default:
			var next uint64
			err := conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(id) + 1, 0) FROM `"+f.table(tag.Name)+"`").Scan(&next)
			if err != nil {
				return tags, err
			}
			tag.MaxID = int64(min(next, math.MaxInt64))
		}
	}
	return tags, err
}

// Tags lists the tags that any server has, by name; servers that do not answer are
// left out. MaxID is one past the highest ID that one of them has drawn. Where all tags
// share a table, so do they the MaxID.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		tags := make(map[string]segment.Tag)
		err := s.visit(ctx, func(m *member, _ bool) (bool, error) { return false, s.listOne(ctx, m, tags) })
		if err != nil {
			yield(segment.Tag{}, fmt.Errorf("list tags: %w", err))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(tags)) {
			if !yield(tags[name], nil) {
				return
			}
		}
	}
}

// listOne adds the tags of one server.
func (s *Store) listOne(ctx context.Context, m *member, all map[string]segment.Tag) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.use(ctx, m, func(conn *sql.Conn, f *facts) error {
		tags, err := f.tags(ctx, conn)
		if err != nil {
			return err
		}
		for _, tag := range tags {
			all[tag.Name] = join(all[tag.Name], tag)
		}
		return nil
	})
}

// join puts together what two servers say of a tag.
func join(a, b segment.Tag) segment.Tag {
	later := a
	if b.Updated.After(a.Updated) || a.Name == "" {
		later = b
	}
	later.MaxID = max(a.MaxID, b.MaxID)
	return later
}
