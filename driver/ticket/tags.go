package ticket

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// A row is one of leaf_ticket_tag.
type row struct {
	name        string
	generation  int64
	next        int64 // 0 where the servers deal single tickets
	step        int64
	description string
	updated     time.Time
}

const selectRow = `SELECT name, generation, next_id, step, description, UNIX_TIMESTAMP(updated) FROM leaf_ticket_tag`

func scanRow(from interface{ Scan(...any) error }) (row, error) {
	var r row
	var updated sql.Null[float64]
	if err := from.Scan(&r.name, &r.generation, &r.next, &r.step, &r.description, &updated); err != nil {
		return row{}, err
	}
	if updated.V > 0 {
		r.updated = time.UnixMicro(int64(updated.V * 1e6))
	}
	return r, nil
}

// findTag returns the row of a tag, or [leaf.ErrUnknownTag].
func findTag(ctx context.Context, conn *sql.Conn, tag string) (row, error) {
	r, err := scanRow(conn.QueryRowContext(ctx, selectRow+` WHERE name = ?`, []byte(tag)))
	if errors.Is(err, sql.ErrNoRows) {
		return row{}, leaf.ErrUnknownTag
	}
	return r, err
}

func allRows(ctx context.Context, conn *sql.Conn) ([]row, error) {
	rows, err := conn.QueryContext(ctx, selectRow)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []row
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// A counting reads how far the tags of one server are.
type counting struct {
	meta *meta
	seen map[string]int64 // by table of tickets
}

// drawn returns one past the highest ID that a server has drawn for a tag, 0 if none.
func (c *counting) drawn(ctx context.Context, conn *sql.Conn, r row) (int64, error) {
	if c.meta.layout.Stride > 0 {
		return c.meta.share.drawn(r.next), nil
	}
	table := c.meta.layout.table(r.name)
	if high, ok := c.seen[table]; ok {
		return high, nil
	}
	high, err := highest(ctx, conn, table)
	if c.seen == nil {
		c.seen = make(map[string]int64)
	}
	c.seen[table] = high
	return high, err
}

// highest returns one past the highest ticket of a table: the row of the last one is
// still there.
func highest(ctx context.Context, conn *sql.Conn, table string) (int64, error) {
	var high uint64
	err := conn.QueryRowContext(ctx, "SELECT COALESCE(MAX(id) + 1, 0) FROM `"+table+"`").Scan(&high)
	return int64(min(high, math.MaxInt64)), err
}

// tags returns the tags of one server.
func (f *facts) tags(ctx context.Context, conn *sql.Conn) ([]segment.Tag, error) {
	rows, err := allRows(ctx, conn)
	if err != nil {
		return nil, err
	}
	c := counting{meta: f.meta}
	var tags []segment.Tag
	for _, r := range rows {
		high, err := c.drawn(ctx, conn, r)
		if err != nil {
			return nil, err
		}
		tags = append(tags, segment.Tag{Name: r.name, MaxID: high, Step: r.step, Description: r.description, Updated: r.updated})
	}
	return tags, nil
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
	var failed []error
	up, down := s.order()
	for _, members := range [][]*member{up, down} {
		answers := 0
		for _, m := range members {
			err := s.listOne(ctx, m, all)
			if gone := s.usable(ctx); gone != nil {
				return nil, gone
			}
			if err == nil {
				answers++
				continue
			}
			s.failed(m, err)
			failed = append(failed, fmt.Errorf("%s: %w", m.Name, explain(err)))
		}
		if answers > 0 {
			return all, nil
		}
	}
	return nil, fmt.Errorf("no ticket server is fit for use: %w", failures(failed))
}

func (s *Store) listOne(ctx context.Context, m *member, all map[string]segment.Tag) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.use(ctx, m, func(conn *sql.Conn, f *facts) error {
		tags, err := f.tags(ctx, conn)
		for _, tag := range tags {
			all[tag.Name] = join(all[tag.Name], tag)
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
