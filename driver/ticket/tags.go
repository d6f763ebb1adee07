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

// A row is one of leaf_ticket_tag.
type row struct {
	name       string
	generation int64
	next       int64 // 0 where the servers deal single tickets
	step       int64
	options    segment.TagOptions
	updated    time.Time
}

const selectRow = `SELECT name, generation, next_id, step, description, COALESCE(UNIX_TIMESTAMP(updated), 0) FROM leaf_ticket_tag`

// readRows returns the tags of a server, or the one of that name.
func readRows(ctx context.Context, conn *sql.Conn, name ...string) ([]row, error) {
	query, args := selectRow, []any(nil)
	for _, tag := range name {
		query, args = query+` WHERE name = ?`, append(args, []byte(tag))
	}
	rows, err := conn.QueryContext(ctx, query, args...)
	return sqlstore.Collect(rows, err, func(scan func(...any) error) (r row, err error) {
		var updated float64
		var description string
		err = scan(&r.name, &r.generation, &r.next, &r.step, &description, &updated)
		r.options = segment.Describe(description)
		if updated > 0 {
			r.updated = time.UnixMicro(int64(updated * 1e6))
		}
		return r, err
	})
}

// onlyDescribed reports options that the tables have no place for.
func onlyDescribed(o segment.TagOptions) error {
	if o.Others() != nil {
		return fmt.Errorf("%w: ticket servers keep a description, and no other option of a tag", leaf.ErrUnsupported)
	}
	return nil
}

// findTag returns the row of a tag, or [leaf.ErrUnknownTag].
func findTag(ctx context.Context, conn *sql.Conn, tag string) (row, error) {
	rows, err := readRows(ctx, conn, tag)
	if err != nil || len(rows) == 0 {
		return row{}, cmp.Or(err, leaf.ErrUnknownTag)
	}
	return rows[0], nil
}

// tag returns a tag as one server has it. MaxID is one past the highest drawn ID, or 0 before the
// first: the row of the last ticket still exists.
func (m *meta) tag(ctx context.Context, conn *sql.Conn, r row) (segment.Tag, error) {
	tag := segment.Tag{Name: r.name, Step: r.step, Options: r.options, Updated: r.updated}
	if m.layout.Stride > 0 {
		tag.MaxID = m.share.drawn(r.next)
		return tag, nil
	}
	var high uint64
	err := conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(id) + 1, 0) FROM `"+m.layout.table(r.name)+"`").Scan(&high)
	tag.MaxID = int64(min(high, math.MaxInt64))
	return tag, err
}

// Tags lists the tags that any server has, by name; servers that do not answer are
// left out. MaxID is one past the highest ID that one of them has drawn. Where all tags
// share a table, so do they the MaxID.
func (s *Store) Tags(ctx context.Context) iter.Seq2[segment.Tag, error] {
	return func(yield func(segment.Tag, error) bool) {
		tags, err := s.list(ctx)
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

func (s *Store) list(ctx context.Context) (map[string]segment.Tag, error) {
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	all := make(map[string]segment.Tag)
	var failed sqlstore.Failures
	answers := 0
	up, down := s.order()
	for i, m := range slices.Concat(up, down) {
		if i == len(up) && answers > 0 {
			break
		}
		err := s.listOne(ctx, m, all)
		if gone := s.usable(ctx); gone != nil {
			return nil, gone
		}
		if err == nil {
			answers++
			continue
		}
		s.failed(m, err)
		failed = append(failed, m.wrapErr(err))
	}
	if answers == 0 {
		return nil, fmt.Errorf("no ticket server is fit for use: %w", failed)
	}
	return all, nil
}

// listOne adds the tags of one server. It asks a shared table once.
func (s *Store) listOne(ctx context.Context, m *member, all map[string]segment.Tag) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.use(ctx, m, func(conn *sql.Conn, f *facts) error {
		rows, err := readRows(ctx, conn)
		var tag segment.Tag
		for i, r := range rows {
			if shared := tag.MaxID; i > 0 && f.layout.shared() {
				tag = segment.Tag{Name: r.name, MaxID: shared, Step: r.step, Options: r.options, Updated: r.updated}
			} else if tag, err = f.tag(ctx, conn, r); err != nil {
				return err
			}
			all[r.name] = join(all[r.name], tag)
		}
		return err
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
