package ticket

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
)

// Init makes servers, which number 1 … N in their order, a set, with the given tags.
// Where one of them is part of a set it fails with an error that wraps
// [io/fs.ErrExist]. A table Tickets64 that exists is taken over as it is, above its
// highest ticket on any server. An Init that died half-way is completed by [Resize].
func Init(ctx context.Context, servers []Server, layout Layout, tags []segment.Tag) error {
	if err := segment.CheckTags(tags); err != nil {
		return fmt.Errorf("init ticket store: %w", err)
	}
	f := &founding{layout: layout, fresh: true, tags: tags}
	if err := f.run(ctx, servers, nil); err != nil {
		return fmt.Errorf("init ticket store: %w", err)
	}
	return nil
}

// ResizeOptions are the optional arguments of [Resize]; nil means all defaults.
type ResizeOptions struct {
	// Retired are the servers that leave the set.
	Retired []Server

	// Lost are the names of servers of the set as it was whose data is gone for good:
	// the name of a [Server], or its host, or its host and port. The others go on Jump
	// above the highest of their counters. One of the same name may be among the
	// servers: it begins anew, and must be empty.
	Lost []string

	// Jump is more IDs than a lost server can have been ahead of all others, for any
	// tag. Default: [DefaultJump].
	Jump int64
}

// DefaultJump is a ten-millionth of the IDs that a tag has.
const DefaultJump = 1_000_000_000_000

// Resize makes servers, which number 1 … N in their order, the set from now on.
// Together with those that retire or are lost they must be every server of the set as
// it was, and all but the lost ones must answer. Meanwhile nothing is issued; clients
// that know the set as it was are refused by the servers from then on. It is safe to
// run again, also with other servers, after it died half-way.
func Resize(ctx context.Context, servers []Server, layout Layout, opts *ResizeOptions) error {
	if opts == nil {
		opts = &ResizeOptions{}
	}
	f := &founding{layout: layout, lost: opts.Lost, jump: cmp.Or(opts.Jump, DefaultJump)}
	if err := f.run(ctx, servers, opts.Retired); err != nil {
		return fmt.Errorf("resize ticket store: %w", err)
	}
	return nil
}

// Exists reports whether any of the servers is part of a set.
func Exists(ctx context.Context, servers []Server) (bool, error) {
	members, err := newMembers(servers)
	if err != nil {
		return false, fmt.Errorf("look for the ticket store: %w", err)
	}
	for _, m := range members {
		var known *meta
		conn, err := m.DB.Conn(ctx)
		if err == nil {
			known, err = readMeta(ctx, conn)
			conn.Close()
		}
		if err != nil {
			return false, fmt.Errorf("look for the ticket store: %s: %w", m.Name, explain(err))
		}
		if known != nil && known.state != stateNew {
			return true, nil
		}
	}
	return false, nil
}

// A founding makes a set of servers out of what there is: of nothing, of another set,
// or of what an earlier founding left half-way.
type founding struct {
	layout Layout
	fresh  bool
	tags   []segment.Tag
	lost   []string                 // names of servers of the set as it was
	jump   int64                    // above every counter, where servers are lost
	after  func(stage string) error // for tests; nil: nothing

	desks   []*desk // all of them
	servers []*desk // the set to be
	retired []*desk
	cluster string
	rows    map[string]row   // of all tags
	floors  map[string]int64 // of all tags
}

// run goes from stage to stage, each of which may be repeated. What makes the order
// safe: a counter is read when no server can move it any more, and no server is put to
// work before every counter was lifted.
func (f *founding) run(ctx context.Context, servers, retired []Server) error {
	if err := f.layout.check(); err != nil {
		return err
	}
	members, err := newMembers(slices.Concat(servers, retired))
	if err != nil {
		return err
	}
	if len(servers) == 0 {
		return fmt.Errorf("%w: no ticket servers", leaf.ErrInvalid)
	}
	return atDesks(ctx, members, func(desks []*desk) error {
		f.desks, f.servers, f.retired = desks, desks[:len(servers)], desks[len(servers):]
		for _, stage := range []struct {
			name string
			do   func(context.Context) error
		}{
			{"check", f.check}, {"prepare", f.prepare}, {"stop", f.stop}, {"read", f.read}, {"lift", f.lift}, {"start", f.start}, {"retire", f.retire},
		} {
			if err := stage.do(ctx); err != nil {
				return err
			}
			if err := f.pause(stage.name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f *founding) pause(stage string) error {
	if f.after == nil {
		return nil
	}
	return f.after(stage)
}

// check changes nothing.
func (f *founding) check(context.Context) error {
	given := make(map[string]*desk)
	for _, d := range f.desks {
		switch {
		case d.meta == nil:
			continue
		case f.fresh && d.meta.state != stateNew:
			return d.blame(existsError{fmt.Sprintf("the server is part of a set already, number %d of %d", d.meta.share.number, d.meta.share.servers)})
		case d.meta.layout != f.layout && d.meta.state != stateNew:
			return d.blame(fmt.Errorf("%w: it was set up for %v, which never changes, the URL says %v", leaf.ErrInvalid, d.meta.layout, f.layout))
		case given[d.meta.member] != nil:
			return d.blame(fmt.Errorf("%w: it is a copy of %s, or the same server: delete its table leaf_ticket if it is a copy",
				leaf.ErrInvalid, given[d.meta.member].Name))
		case f.cluster != "" && d.meta.cluster != f.cluster && d.meta.state != stateNew:
			return d.blame(fmt.Errorf("%w: it belongs to another set of servers than the others", leaf.ErrInvalid))
		}
		given[d.meta.member] = d
		if d.meta.state != stateNew {
			f.cluster = d.meta.cluster
		}
	}
	if !f.fresh && len(given) == 0 {
		return fmt.Errorf("%w: none of the servers is part of a set: create one first, without --resize", segment.ErrNotCreated)
	}
	if f.jump < 0 {
		return fmt.Errorf("%w: a jump of %d IDs", leaf.ErrInvalid, f.jump)
	}
	return f.complete(given)
}

// complete reports servers of the set as it was that were neither given nor called lost:
// their counters would stay below the others', and their old clients go on.
func (f *founding) complete(given map[string]*desk) error {
	missing := make(map[string]bool)
	for _, d := range f.desks {
		if d.meta == nil || d.meta.state == stateRetired {
			continue
		}
		for i, member := range d.meta.members {
			if given[member] != nil {
				continue
			}
			if missing[member] = true; len(missing) > len(f.lost) {
				return d.blame(fmt.Errorf("%w: its set has a server number %d that was not named: name every server of the old set, "+
					"those to be taken out too, and say of one whose data is gone for good that it is lost", leaf.ErrInvalid, i+1))
			}
			if err := f.checkLost(d.meta.members, given); err != nil {
				return err
			}
		}
	}
	if len(missing) < len(f.lost) {
		return fmt.Errorf("%w: %d servers are called lost, and the set lacks %d", leaf.ErrInvalid, len(f.lost), len(missing))
	}
	return nil
}

// checkLost reports a server that is called lost and is there, as one of these members:
// then it is another one that is missing.
func (f *founding) checkLost(members []string, given map[string]*desk) error {
	for _, member := range members {
		if d := given[member]; d != nil && slices.ContainsFunc(f.lost, d.isCalled) {
			return d.blame(fmt.Errorf("%w: it is not lost, it has the tables of the set: drop them if they came out of a backup, "+
				"else call that one lost which is", leaf.ErrInvalid))
		}
	}
	return nil
}

// prepare gives each server the tables, and a name that stays with its data.
func (f *founding) prepare(ctx context.Context) error {
	if f.cluster == "" {
		f.cluster = rand.Text()
	}
	for _, d := range f.desks {
		tables := []string{metaTable, tagTable}
		if f.layout.Stride == 0 && !f.layout.TablePerTag {
			tables = append(tables, fmt.Sprintf(ticketTable, sharedTable))
		}
		for _, table := range tables {
			if err := d.exec(ctx, table); err != nil {
				return err
			}
		}
		if err := f.fit(ctx, d); err != nil {
			return d.blame(err)
		}
		if d.meta != nil && d.meta.state != stateNew {
			continue
		}
		member := rand.Text()
		if d.meta != nil {
			member = d.meta.member
		}
		d.meta = &meta{state: stateNew, cluster: f.cluster, member: member, layout: f.layout}
		if err := d.exec(ctx, `REPLACE INTO leaf_ticket (one, format, state, cluster, member, generation, servers, number, stride, table_per_tag, members)
			VALUES (1, ?, ?, ?, ?, 0, 0, 0, ?, ?, '')`, format, stateNew, f.cluster, member, f.layout.Stride, f.layout.TablePerTag); err != nil {
			return err
		}
	}
	return nil
}

// fit looks at tables that may have been there before.
func (f *founding) fit(ctx context.Context, d *desk) error {
	for _, table := range []string{"leaf_ticket", "leaf_ticket_tag"} {
		if err := checkEngine(ctx, d.conn, table); err != nil {
			return err
		}
	}
	if f.layout.Stride == 0 && !f.layout.TablePerTag {
		return (&facts{}).checkTickets(ctx, d.conn, sharedTable)
	}
	return nil
}

// stop has no server issue any more, and waits for the draws under way.
func (f *founding) stop(ctx context.Context) error {
	for _, d := range f.desks {
		if d.meta.state != stateNew && d.meta.state != stateRetired {
			d.meta.state = stateResizing
		}
		if err := d.both(ctx, `UPDATE leaf_ticket SET state = ?`, `UPDATE leaf_ticket_tag SET generation = 0`, []any{d.meta.state}, nil); err != nil {
			return err
		}
		if err := f.pause("stop " + d.Name); err != nil {
			return err
		}
	}
	return nil
}

// read finds the tags of all servers and the highest counter of each. Where all share
// a table all have the highest of that.
func (f *founding) read(ctx context.Context) error {
	f.rows, f.floors = make(map[string]row), make(map[string]int64)
	for _, tag := range f.tags {
		f.rows[tag.Name] = row{name: tag.Name, step: tag.Step, description: tag.Description}
		f.floors[tag.Name] = tag.MaxID
	}
	var shared int64
	for _, d := range f.desks {
		if f.layout.Stride == 0 && !f.layout.TablePerTag {
			high, err := d.mark(ctx, sharedTable)
			if err != nil {
				return d.blame(err)
			}
			shared = max(shared, high)
		}
		if err := f.readOne(ctx, d); err != nil {
			return d.blame(err)
		}
	}
	if len(f.lost) > 0 {
		var err error
		if shared, err = f.leap(shared); err != nil {
			return err
		}
	}
	for name, floor := range f.floors {
		shared = max(shared, floor)
		if f.layout.Stride == 0 && !f.layout.TablePerTag {
			f.floors[name] = shared
		}
	}
	return f.liftShared(ctx, shared)
}

// leap adds the jump to every counter, and returns that which all tags share.
func (f *founding) leap(shared int64) (int64, error) {
	high := shared
	for _, floor := range f.floors {
		high = max(high, floor)
	}
	if high > math.MaxInt64-f.jump {
		return 0, fmt.Errorf("%w: the highest counter is %d, and %d above it is none: choose a smaller jump", leaf.ErrOverflow, high, f.jump)
	}
	for name := range f.floors {
		f.floors[name] += f.jump
	}
	return shared + f.jump, nil
}

func (f *founding) readOne(ctx context.Context, d *desk) error {
	rows, err := allRows(ctx, d.conn)
	if err != nil {
		return err
	}
	for _, r := range rows {
		high := r.next
		if f.layout.TablePerTag {
			if high, err = d.mark(ctx, f.layout.table(r.name)); err != nil {
				return fmt.Errorf("tag %q: %w", r.name, err)
			}
		}
		if known := f.rows[r.name]; known.name == "" || r.updated.After(known.updated) {
			f.rows[r.name] = r
		}
		f.floors[r.name] = max(f.floors[r.name], high)
	}
	return nil
}

// liftShared lifts the one table of all tags, also where there is no tag yet.
func (f *founding) liftShared(ctx context.Context, floor int64) error {
	if f.layout.Stride > 0 || f.layout.TablePerTag {
		return nil
	}
	for _, d := range f.desks {
		if err := d.lift(ctx, sharedTable, floor); err != nil {
			return err
		}
	}
	return nil
}

// lift gives every server every tag, above whatever was drawn. Those to be taken out
// are lifted too: what they hold counts when one of them comes back.
func (f *founding) lift(ctx context.Context) error {
	for i, d := range f.servers {
		s := share{servers: int64(len(f.servers)), number: int64(i + 1), stride: f.layout.Stride}
		for name, r := range f.rows {
			r.generation = 0
			r.next = 0
			if err := d.place(ctx, r, f.floors[name], f.layout, s); err != nil {
				return err
			}
		}
		if err := f.pause("lift " + d.Name); err != nil {
			return err
		}
	}
	return nil
}

// lostGenerations is more than a lost server can have been ahead of the others: each
// resize that died after its first start put that one server ahead by one.
const lostGenerations = 1 << 20

// start puts the servers to work, one after the other.
func (f *founding) start(ctx context.Context) error {
	generation := int64(0)
	var members []string
	for _, d := range f.desks {
		generation = max(generation, d.meta.generation)
	}
	generation++
	if len(f.lost) > 0 {
		generation += lostGenerations
	}
	for _, d := range f.servers {
		members = append(members, d.meta.member)
	}
	for i, d := range f.servers {
		if err := d.both(ctx,
			`UPDATE leaf_ticket SET state = ?, cluster = ?, generation = ?, servers = ?, number = ?, members = ?`,
			`UPDATE leaf_ticket_tag SET generation = ?`,
			[]any{stateReady, f.cluster, generation, len(f.servers), i + 1, strings.Join(members, " ")}, []any{generation}); err != nil {
			return err
		}
		if err := f.pause("start " + d.Name); err != nil {
			return err
		}
	}
	return nil
}

func (f *founding) retire(ctx context.Context) error {
	var errs []error
	for _, d := range f.retired {
		errs = append(errs, d.exec(ctx, `UPDATE leaf_ticket SET state = ?, members = ''`, stateRetired))
	}
	return errors.Join(errs...)
}
