package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/segment"
)

// administer makes the call what, unless it is invalid, with a connection to every server. All must
// be fit.
func (s *Store) administer(ctx context.Context, what string, invalid error, do func([]*adminConn) error) error {
	err := cmp.Or(invalid, s.usable(ctx))
	if err != nil {
		return wrap(err, "%s", what)
	}
	err = lockAll(ctx, s.members, func(conns []*adminConn) error {
		for _, a := range conns {
			if err := a.fits(s.layout, int64(len(s.members))); err != nil {
				return a.wrapErr(err)
			}
			if a.generation != conns[0].generation || a.cluster != conns[0].cluster {
				return a.wrapErr(errResized)
			}
		}
		return do(conns)
	})
	if gone := s.usable(ctx); err != nil && gone != nil && !errors.Is(err, gone) {
		err = fmt.Errorf("%w: %w", gone, err)
	}
	return wrap(err, "%s", what)
}

// Check reports why not every server of the set is fit for use.
func (s *Store) Check(ctx context.Context) error {
	return s.administer(ctx, "check ticket store", nil, func([]*adminConn) error { return nil })
}

// A tagState is the state of a tag on all servers together.
type tagState struct {
	tag   segment.Tag
	end   int64      // above its IDs, and those of a deleted tag of the name
	n     int        // servers with the tag
	lacks *adminConn // a server without the tag, or without its table; nil: all have it
}

func findState(ctx context.Context, conns []*adminConn, name string) (st tagState, err error) {
	for _, a := range conns {
		tags, err := a.tags(ctx, a.conn, name)
		if len(tags) > 0 && mysqlconn.IsNumber(err, mysqlconn.NoTable) {
			st.lacks, err = a, nil
		}
		var kept int64
		if err == nil {
			kept, err = a.keptEnd(ctx, name)
		}
		if err != nil {
			return tagState{}, a.wrapErr(err)
		}
		if len(tags) == 0 {
			st.lacks = a
		}
		for _, tag := range tags {
			st.tag = join(st.tag, tag)
			st.n++
		}
		st.end = max(st.end, st.tag.MaxID, kept)
	}
	return st, nil
}

// Create adds a tag on every server; all of them must answer. One that an earlier
// Create could not add everywhere is completed. MaxID is where IDs begin: at it, or
// above, and above those of a deleted tag of the name.
func (s *Store) Create(ctx context.Context, tag segment.Tag) error {
	return s.administer(ctx, fmt.Sprintf("create tag %q", tag.Name), cmp.Or(tag.Check(), onlyDescribed(tag.Options)), func(conns []*adminConn) error {
		have, err := findState(ctx, conns, tag.Name)
		if err == nil && have.n == len(conns) {
			err = leaf.ErrTagExists
		}
		if err != nil {
			return err
		}
		tag.MaxID = max(tag.MaxID, have.end)
		return write(ctx, conns, tag)
	})
}

// write has every server know the tag so, and draw from tag.MaxID on.
func write(ctx context.Context, conns []*adminConn, tag segment.Tag) error {
	for _, a := range conns {
		if err := a.place(ctx, tag); err != nil {
			return err
		}
	}
	return nil
}

// Alter changes a tag on every server and returns it as it then is; all of them must answer.
// Raised, MaxID is where each server goes on. Where all tags share a table it is raised for all of
// them. No counter can be lowered, not even by a deletion. A server that lacks the tag or its table
// gets it with a MaxID only, since only it knew how far it was. A change of nothing writes nothing.
func (s *Store) Alter(ctx context.Context, name string, change segment.Change) (tag segment.Tag, err error) {
	invalid := cmp.Or(change.Check(), onlyDescribed(change.Options), segment.CheckKnown(name))
	err = s.administer(ctx, fmt.Sprintf("alter tag %q", name), invalid, func(conns []*adminConn) error {
		tag, err = s.alter(ctx, conns, name, change)
		return err
	})
	return tag, err
}

func (s *Store) alter(ctx context.Context, conns []*adminConn, name string, change segment.Change) (segment.Tag, error) {
	have, err := findState(ctx, conns, name)
	switch {
	case err != nil:
		return segment.Tag{}, err
	case have.n == 0:
		return segment.Tag{}, leaf.ErrUnknownTag
	case change.MaxID != nil && *change.MaxID < have.tag.MaxID && change.Force:
		return segment.Tag{}, fmt.Errorf("%w: the counters of ticket servers cannot be lowered: create a tag with another name", leaf.ErrUnsupported)
	case change.MaxID == nil && have.lacks != nil:
		// To make the tag without knowing how far it was on the server would start it again there.
		return segment.Tag{}, have.lacks.wrapErr(fmt.Errorf("%w: the server lacks the tag or its table, which the others have: "+
			"set where all servers are to go on, above every ID of the tag", segment.ErrDamaged))
	case change.IsZero():
		return have.tag, nil
	}
	tag, err := change.Apply(have.tag)
	if err != nil {
		return segment.Tag{}, err
	}
	if change.MaxID == nil {
		tag.MaxID = 0 // no lift
	}
	if err := write(ctx, conns, tag); err != nil {
		return segment.Tag{}, err
	}
	have, err = findState(ctx, conns, name)
	return have.tag, err
}

// Delete removes a tag from every server; all of them must answer. Each keeps where the tag ended.
// With a table per tag the table goes too.
func (s *Store) Delete(ctx context.Context, name string) error {
	return s.administer(ctx, fmt.Sprintf("delete tag %q", name), segment.CheckKnown(name), func(conns []*adminConn) error {
		return s.remove(ctx, conns, name)
	})
}

func (s *Store) remove(ctx context.Context, conns []*adminConn, name string) error {
	end, err := s.stop(ctx, conns, name)
	if err != nil {
		return err
	}
	for _, a := range conns {
		err := a.both(ctx, `INSERT INTO leaf_ticket_deleted (name, next_id) VALUES (?, ?)
			ON DUPLICATE KEY UPDATE next_id = GREATEST(next_id, VALUES(next_id))`,
			`DELETE FROM leaf_ticket_tag WHERE name = ?`, []byte(name), end, []byte(name))
		if err != nil {
			return err
		}
		if s.layout.TablePerTag {
			if err := a.exec(ctx, "DROP TABLE IF EXISTS `"+s.layout.table(name)+"`"); err != nil {
				return err
			}
		}
	}
	return nil
}

// stop has all servers draw no more IDs of a tag, and returns a number above all that they drew. It
// stays so until Delete or Alter with a MaxID succeeds.
func (s *Store) stop(ctx context.Context, conns []*adminConn, name string) (end int64, _ error) {
	if have, err := findState(ctx, conns, name); err != nil || have.n == 0 {
		return 0, cmp.Or(err, leaf.ErrUnknownTag)
	}
	for _, a := range conns {
		err := a.exec(ctx, deletedTable)
		if err == nil { // it waits for the draws under way
			err = a.exec(ctx, `UPDATE leaf_ticket_tag SET generation = 0 WHERE name = ?`, []byte(name))
		}
		if err != nil {
			return 0, err
		}
	}
	have, err := findState(ctx, conns, name)
	if err != nil || s.layout.Stride > 0 {
		return have.end, err
	}
	for _, a := range conns {
		drawn, err := a.mark(ctx, s.layout.table(name))
		if err != nil && !mysqlconn.IsNumber(err, mysqlconn.NoTable) {
			return 0, a.wrapErr(err)
		}
		have.end = max(have.end, drawn)
	}
	return have.end, nil
}

// Lift has a server, named as in [segment.Grant].Source, draw a tag's IDs from floor
// on. It never lowers a counter, and may be repeated.
func (s *Store) Lift(ctx context.Context, tag, source string, floor int64) error {
	err := cmp.Or(segment.CheckKnown(tag), s.usable(ctx))
	if err == nil {
		err = s.lift(ctx, tag, source, floor)
	}
	return wrap(err, "lift %q on server %s", tag, source)
}

func (s *Store) lift(ctx context.Context, tag, source string, floor int64) error {
	for _, m := range s.members {
		if f := m.facts.Load(); f == nil || f.source() != source {
			continue
		}
		return m.wrapErr(s.use(ctx, m, func(conn *sql.Conn, f *facts) error {
			if f.source() != source {
				return errResized
			}
			if f.Stride == 0 {
				return liftTable(ctx, conn, f.table(tag), floor)
			}
			_, err := conn.ExecContext(ctx, `UPDATE leaf_ticket_tag SET next_id = GREATEST(next_id, ?) WHERE name = ? AND generation = ?`,
				f.align(floor), []byte(tag), f.generation)
			return err
		}))
	}
	return fmt.Errorf("%w: no server of that number has answered yet", leaf.ErrInvalid)
}
