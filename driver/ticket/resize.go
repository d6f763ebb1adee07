package ticket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// ResizeOptions are the optional arguments of [DB.Resize]; nil means all defaults.
type ResizeOptions struct {
	// Retired are the servers that leave the set.
	Retired []Server

	// Lost names servers of the old set with lost data: by the name of a [Server], or its host,
	// or its host and port. The others continue Jump above their highest counter. A server with
	// the same name may be in the new set: it starts over, and must be empty.
	Lost []string

	// Jump is more IDs than a lost server can have been ahead of all others, for any
	// tag. Default: [DefaultJump].
	Jump int64
}

// DefaultJump is a ten-millionth of the IDs that a tag has.
const DefaultJump = 1_000_000_000_000

// A resizer makes a set of servers out of nothing, out of another set, or out of an interrupted
// resize.
type resizer struct {
	layout Layout
	fresh  bool
	tags   []segment.Tag
	lost   []string                 // names of servers of the set as it was
	jump   int64                    // above every counter, where servers are lost
	after  func(stage string) error // for tests; nil: nothing

	conns   []*adminConn // to all of them
	servers []*adminConn // the set to be
	leaving []*adminConn
	cluster string
	rows    map[string]row // of all tags; next is where they go on
}

// run executes the stages, each of which is repeatable. Their order makes it safe: it reads a
// counter after no server can move it any more, and starts a server after it has lifted every
// counter.
func (r *resizer) run(ctx context.Context, servers, retired []Server) error {
	members, err := newMembers(slices.Concat(servers, retired))
	if err != nil {
		return err
	}
	if r.after == nil {
		r.after = func(string) error { return nil }
	}
	return lockAll(ctx, members, func(conns []*adminConn) error {
		r.conns, r.servers, r.leaving = conns, conns[:len(servers)], conns[len(servers):]
		for _, stage := range []struct {
			name string
			do   func(context.Context) error
		}{
			{"check", r.check}, {"prepare", r.prepare}, {"stop", r.stop}, {"read", r.read}, {"lift", r.lift}, {"start", r.start}, {"retire", r.retire},
		} {
			if err := stage.do(ctx); err != nil {
				return err
			}
			if err := r.after(stage.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// check changes nothing.
func (r *resizer) check(context.Context) error {
	given := make(map[string]*adminConn) // by the member's name that stays with its data
	for _, a := range r.conns {
		if a.meta == nil {
			continue
		}
		used := a.state != stateNew
		switch {
		case r.fresh && used:
			return a.wrapErr(sqlstore.Mark(fmt.Errorf("the server is part of a set already, number %d of %d", a.share.number, a.share.servers), fs.ErrExist))
		case a.layout != r.layout && used:
			return a.wrapErr(fmt.Errorf("%w: it was set up for %v, which never changes, the URL says %v", leaf.ErrInvalid, a.layout, r.layout))
		case given[a.meta.member] != nil:
			return a.wrapErr(fmt.Errorf("%w: it is a copy of %s, or the same server: delete its table leaf_ticket if it is a copy",
				leaf.ErrInvalid, given[a.meta.member].Name))
		case r.cluster != "" && a.cluster != r.cluster && used:
			return a.wrapErr(fmt.Errorf("%w: it belongs to another set of servers than the others", leaf.ErrInvalid))
		}
		given[a.meta.member] = a
		if used {
			r.cluster = a.cluster
		}
	}
	if !r.fresh && len(given) == 0 {
		return fmt.Errorf("%w: none of the servers is part of a set", segment.ErrNotCreated)
	}
	if r.jump < 0 {
		return fmt.Errorf("%w: a jump of %d IDs", leaf.ErrInvalid, r.jump)
	}
	return r.complete(given)
}

// complete reports servers of the old set that are neither given nor lost: their counters would
// stay below the others', and their old clients would continue.
func (r *resizer) complete(given map[string]*adminConn) error {
	missing := make(map[string]bool)
	for _, a := range r.conns {
		if a.meta == nil || a.state == stateRetired {
			continue
		}
		for i, member := range a.members {
			if given[member] != nil {
				continue
			}
			if missing[member] = true; len(missing) > len(r.lost) {
				return a.wrapErr(fmt.Errorf("%w: its set has a server number %d that was not named: name every server of the old set, "+
					"those to be taken out too, and say of one whose data is gone for good that it is lost", leaf.ErrInvalid, i+1))
			}
			if err := r.checkLost(a.members, given); err != nil {
				return err
			}
		}
	}
	if len(missing) < len(r.lost) {
		return fmt.Errorf("%w: %d servers are called lost, and the set lacks %d", leaf.ErrInvalid, len(r.lost), len(missing))
	}
	return nil
}

// checkLost reports a lost server that is present, as one of these members: then another one is
// missing.
func (r *resizer) checkLost(members []string, given map[string]*adminConn) error {
	for _, member := range members {
		if a := given[member]; a != nil && slices.ContainsFunc(r.lost, a.isCalled) {
			return a.wrapErr(fmt.Errorf("%w: it is not lost, it has the tables of the set: drop them if they came out of a backup, "+
				"else call that one lost which is", leaf.ErrInvalid))
		}
	}
	return nil
}

// prepare gives each server the tables, and a name that stays with its data.
func (r *resizer) prepare(ctx context.Context) error {
	if r.cluster == "" {
		r.cluster = rand.Text()
	}
	tables := []string{metaTable, tagTable}
	if r.layout.shared() {
		tables = append(tables, fmt.Sprintf(ticketTable, sharedTable))
	}
	for _, a := range r.conns {
		for _, table := range tables {
			if err := a.exec(ctx, table); err != nil {
				return err
			}
		}
		if err := a.checkTables(ctx, a.conn, r.layout, "leaf_ticket", "leaf_ticket_tag"); err != nil {
			return a.wrapErr(err)
		}
		if a.meta != nil && a.state != stateNew {
			continue
		}
		member := rand.Text()
		if a.meta != nil {
			member = a.meta.member
		}
		a.meta = &meta{state: stateNew, cluster: r.cluster, member: member, layout: r.layout}
		if err := a.exec(ctx, `REPLACE INTO leaf_ticket (one, format, state, cluster, member, generation, servers, number, stride, table_per_tag, members)
			VALUES (1, ?, ?, ?, ?, 0, 0, 0, ?, ?, '')`, format, stateNew, r.cluster, member, r.layout.Stride, r.layout.TablePerTag); err != nil {
			return err
		}
	}
	return nil
}

// stop has no server issue any more, and waits for the draws under way.
func (r *resizer) stop(ctx context.Context) error {
	for _, a := range r.conns {
		if a.state != stateNew && a.state != stateRetired {
			a.state = stateResizing
		}
		if err := a.both(ctx, `UPDATE leaf_ticket SET state = ?`, `UPDATE leaf_ticket_tag SET generation = 0`, a.state); err != nil {
			return err
		}
		if err := r.after("stop " + a.Name); err != nil {
			return err
		}
	}
	return nil
}

// read finds the tags of all servers and the highest counter of each. Where all share
// a table, also one without any tag yet, all have the highest of that.
func (r *resizer) read(ctx context.Context) error {
	r.rows = make(map[string]row)
	var highest int64
	for _, tag := range r.tags {
		r.rows[tag.Name] = row{name: tag.Name, step: tag.Step, options: tag.Options, next: tag.MaxID}
		highest = max(highest, tag.MaxID)
	}
	for _, a := range r.conns {
		high, err := r.readOne(ctx, a)
		if err != nil {
			return a.wrapErr(err)
		}
		highest = max(highest, high)
	}
	jump := int64(0)
	if len(r.lost) > 0 {
		jump = r.jump
	}
	if highest > math.MaxInt64-jump {
		return fmt.Errorf("%w: the highest counter is %d, and %d above it is none: choose a smaller jump", leaf.ErrOverflow, highest, jump)
	}
	highest += jump
	for name, row := range r.rows {
		if row.next += jump; r.layout.shared() {
			row.next = highest
		}
		r.rows[name] = row
	}
	if !r.layout.shared() {
		return nil
	}
	for _, a := range r.conns {
		if err := a.lift(ctx, sharedTable, highest); err != nil {
			return err
		}
	}
	return nil
}

// readOne reads the tags of one server, and returns the highest of its counters.
func (r *resizer) readOne(ctx context.Context, a *adminConn) (highest int64, err error) {
	rows, err := readRows(ctx, a.conn)
	if err == nil && r.layout.shared() {
		highest, err = a.mark(ctx, sharedTable)
	}
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		if r.layout.TablePerTag {
			if row.next, err = a.mark(ctx, r.layout.table(row.name)); err != nil {
				return 0, fmt.Errorf("tag %q: %w", row.name, err)
			}
		}
		known, next := r.rows[row.name], row.next
		if known.name != "" && !row.updated.After(known.updated) {
			row = known
		}
		row.next = max(known.next, next)
		highest = max(highest, row.next)
		r.rows[row.name] = row
	}
	return highest, nil
}

// lift gives every server every tag, above all drawn IDs. It also lifts the leaving servers: their
// counters matter if they return.
func (r *resizer) lift(ctx context.Context) error {
	for i, a := range r.servers {
		s := share{servers: int64(len(r.servers)), number: int64(i + 1), stride: r.layout.Stride}
		for _, known := range r.rows {
			if err := a.place(ctx, row{name: known.name, step: known.step, options: known.options}, known.next, r.layout, s); err != nil {
				return err
			}
		}
		if err := r.after("lift " + a.Name); err != nil {
			return err
		}
	}
	return nil
}

// lostGenerations is more than a lost server can have been ahead of the others: each
// resize that died after its first start put that one server ahead by one.
const lostGenerations = 1 << 20

// start puts the servers to work, one after the other.
func (r *resizer) start(ctx context.Context) error {
	generation := int64(1)
	for _, a := range r.conns {
		generation = max(generation, a.generation+1)
	}
	if len(r.lost) > 0 {
		generation += lostGenerations
	}
	var members []string
	for _, a := range r.servers {
		members = append(members, a.meta.member)
	}
	for i, a := range r.servers {
		if err := a.both(ctx, `UPDATE leaf_ticket SET state = ?, cluster = ?, generation = ?, servers = ?, number = ?, members = ?`,
			`UPDATE leaf_ticket_tag SET generation = ?`,
			stateReady, r.cluster, generation, len(r.servers), i+1, strings.Join(members, " "), generation); err != nil {
			return err
		}
		if err := r.after("start " + a.Name); err != nil {
			return err
		}
	}
	return nil
}

func (r *resizer) retire(ctx context.Context) error {
	var errs []error
	for _, a := range r.leaving {
		errs = append(errs, a.exec(ctx, `UPDATE leaf_ticket SET state = ?, members = ''`, stateRetired))
	}
	return errors.Join(errs...)
}
