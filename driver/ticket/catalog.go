package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// administer runs do with a desk at every server, each of which must be fit for use.
func (s *Store) administer(ctx context.Context, do func([]*desk) error) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	err := atDesks(ctx, s.members, func(desks []*desk) error {
		for _, d := range desks {
			f := &facts{meta: d.meta, open: d.open}
			if err := f.fits(s.layout, int64(len(s.members))); err != nil {
				return d.blame(err)
			}
			if d.meta.generation != desks[0].meta.generation || d.meta.cluster != desks[0].meta.cluster {
				return d.blame(errResized)
			}
		}
		return do(desks)
	})
	if gone := s.usable(ctx); err != nil && gone != nil && !errors.Is(err, gone) {
		return fmt.Errorf("%w: %w", gone, err)
	}
	return err
}

// Check reports why not every server of the set is fit for use.
func (s *Store) Check(ctx context.Context) error {
	if err := s.administer(ctx, func([]*desk) error { return nil }); err != nil {
		return fmt.Errorf("check ticket store: %w", err)
	}
	return nil
}

// A found is what the servers together know of a tag.
type found struct {
	tag   segment.Tag
	rows  []row // by desk; those without the tag have no name
	n     int   // desks that have it
	lacks *desk // one that has not, or not its table; nil: none
}

func find(ctx context.Context, desks []*desk, name string) (found, error) {
	f := found{rows: make([]row, len(desks))}
	for i, d := range desks {
		r, err := findTag(ctx, d.conn, name)
		if errors.Is(err, leaf.ErrUnknownTag) {
			f.lacks = d
			continue
		}
		if err != nil {
			return found{}, d.blame(err)
		}
		c := counting{meta: d.meta}
		high, err := c.drawn(ctx, d.conn, r)
		if isMySQL(err, mysqlNoTable) {
			f.lacks = d
		} else if err != nil {
			return found{}, d.blame(err)
		}
		f.tag = join(f.tag, segment.Tag{Name: r.name, MaxID: high, Step: r.step, Description: r.description, Updated: r.updated})
		f.rows[i] = r
		f.n++
	}
	return f, nil
}

// Create adds a tag on every server; all of them must answer. One that an earlier
// Create could not add everywhere is completed. MaxID is where IDs begin: at it, or
// above.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	err := tag.Check()
	if err == nil {
		err = s.administer(ctx, func(desks []*desk) error {
			have, err := find(ctx, desks, tag.Name)
			switch {
			case err != nil:
				return err
			case have.n == len(desks):
				return leaf.ErrTagExists
			}
			tag.MaxID = max(tag.MaxID, have.tag.MaxID)
			return s.write(ctx, desks, tag, have)
		})
	}
	if err != nil {
		return fmt.Errorf("create tag %q: %w", tag.Name, err)
	}
	return nil
}

// write has every server know the tag so, and draw from tag.MaxID on.
func (s *Store) write(ctx context.Context, desks []*desk, tag segment.Tag, have found) error {
	for i, d := range desks {
		r := row{name: tag.Name, generation: d.meta.generation, next: have.rows[i].next, step: tag.Step, description: tag.Description}
		if err := d.place(ctx, r, tag.MaxID, s.layout, d.meta.share); err != nil {
			return err
		}
	}
	return nil
}

// Alter changes a tag on every server and returns it as it then is; all of them must
// answer. Raised, MaxID is where each server goes on. Where all tags share a table it
// is raised for all of them. No counter can be lowered: delete the tag and create it
// again. A server that lacks the tag or its table gets it with a MaxID only, since
// nobody else knows how far it was. A change of nothing writes nothing.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	var tag segment.Tag
	err := cmp.Or(change.Check(), segment.CheckKnown(name))
	if err == nil {
		err = s.administer(ctx, func(desks []*desk) (err error) {
			tag, err = s.alter(ctx, desks, name, change)
			return err
		})
	}
	if err != nil {
		return segment.Tag{}, fmt.Errorf("alter tag %q: %w", name, err)
	}
	return tag, nil
}

func (s *Store) alter(ctx context.Context, desks []*desk, name string, change segment.Change) (segment.Tag, error) {
	have, err := find(ctx, desks, name)
	switch {
	case err != nil:
		return segment.Tag{}, err
	case have.n == 0:
		return segment.Tag{}, leaf.ErrUnknownTag
	case change.MaxID != nil && *change.MaxID < have.tag.MaxID && change.Force:
		return segment.Tag{}, fmt.Errorf("%w: the counters of ticket servers cannot be lowered: delete the tag and create it again", leaf.ErrUnsupported)
	case change.MaxID != nil && *change.MaxID < have.tag.MaxID:
		return segment.Tag{}, fmt.Errorf("%w: IDs below %d were drawn", leaf.ErrRegression, have.tag.MaxID)
	case change.MaxID == nil && have.lacks != nil:
		return segment.Tag{}, have.lacks.blame(errLacksTag)
	case change == segment.Change{}:
		return have.tag, nil
	}
	tag := amend(have.tag, change)
	if change.MaxID == nil {
		tag.MaxID = 0 // no lift
	}
	if err := s.write(ctx, desks, tag, have); err != nil {
		return segment.Tag{}, err
	}
	have, err = find(ctx, desks, name)
	return have.tag, err
}

func amend(tag segment.Tag, change segment.Change) segment.Tag {
	if change.MaxID != nil {
		tag.MaxID = *change.MaxID
	}
	if change.Step != nil {
		tag.Step = *change.Step
	}
	if change.Description != nil {
		tag.Description = *change.Description
	}
	return tag
}

// Delete removes a tag from every server; all of them must answer. With a table per
// tag the table goes too.
func (s *Store) Delete(ctx context.Context, name string) error {
	err := segment.CheckKnown(name)
	if err == nil {
		err = s.administer(ctx, func(desks []*desk) error { return s.remove(ctx, desks, name) })
	}
	if err != nil {
		return fmt.Errorf("delete tag %q: %w", name, err)
	}
	return nil
}

func (s *Store) remove(ctx context.Context, desks []*desk, name string) error {
	have, err := find(ctx, desks, name)
	if err != nil {
		return err
	}
	if have.n == 0 {
		return leaf.ErrUnknownTag
	}
	for _, d := range desks {
		if err := d.exec(ctx, `DELETE FROM leaf_ticket_tag WHERE name = ?`, []byte(name)); err != nil {
			return err
		}
		if s.layout.TablePerTag {
			if err := d.exec(ctx, "DROP TABLE IF EXISTS `"+s.layout.table(name)+"`"); err != nil {
				return err
			}
		}
	}
	return nil
}

// Lift has a server, named as in [segment.Grant].Source, draw a tag's IDs from floor
// on. It never lowers a counter, and may be repeated.
func (s *Store) Lift(ctx context.Context, tag, source string, floor int64) error {
	err := segment.CheckKnown(tag)
	if err == nil {
		err = s.liftOne(ctx, tag, source, floor)
	}
	if err != nil {
		return fmt.Errorf("lift %q on server %s: %w", tag, source, err)
	}
	return nil
}

func (s *Store) liftOne(ctx context.Context, tag, source string, floor int64) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	for _, m := range s.members {
		f := m.facts.Load()
		if f == nil || f.source() != source {
			continue
		}
		err := s.use(ctx, m, func(conn *sql.Conn, f *facts) error {
			if f.source() != source {
				return errResized
			}
			if f.layout.Stride == 0 {
				return (&desk{member: m, conn: conn, meta: f.meta}).lift(ctx, f.layout.table(tag), floor)
			}
			_, err := conn.ExecContext(ctx, `UPDATE leaf_ticket_tag SET next_id = GREATEST(next_id, ?) WHERE name = ? AND generation = ?`,
				f.share.align(floor), []byte(tag), f.generation)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, explain(err))
		}
		return nil
	}
	return fmt.Errorf("%w: no server of that number has answered yet", leaf.ErrInvalid)
}
