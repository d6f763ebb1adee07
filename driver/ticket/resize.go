package ticket

import (
	"cmp"
	"context"
	"crypto/rand"
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
	lost   []string // names of servers of the set as it was
	jump   int64    // above every counter; 0 without lost servers

	conns      []*adminConn // to all of them
	servers    []*adminConn // the set to be
	cluster    string
	known      map[string]segment.Tag // all tags; MaxID is the highest counter
	highest    int64                  // counter of all
	generation int64                  // of the set to be

	after func(step string) error // of tests: an error breaks off the resize
}

// run takes one step after the other, until one fails. Each stage is repeatable. Their order makes
// them safe: read finds a counter after no server can move it any more, and start comes after every
// counter was lifted.
func (r *resizer) run(ctx context.Context, servers, retired []Server) error {
	members, err := newMembers(slices.Concat(servers, retired))
	if err != nil {
		return err
	}
	return lockAll(ctx, members, func(conns []*adminConn) error {
		r.conns, r.servers = conns, conns[:len(servers)]
		for _, stage := range []struct {
			name string
			on   []*adminConn // one step for each
			do   func(context.Context, *adminConn) error
		}{
			{"check", conns[:1], r.check},
			{"prepare", conns, r.prepare},
			{"stop", conns, r.stop},
			{"read", conns[:1], r.read},
			{"lift", r.servers, r.lift},
			{"start", r.servers, r.start},
			{"retire", conns[len(servers):], r.retire},
		} {
			for _, a := range stage.on {
				err := stage.do(ctx, a)
				if err == nil && r.after != nil {
					err = r.after(stage.name + " " + a.Name)
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// check changes nothing.
func (r *resizer) check(context.Context, *adminConn) error {
	given := make(map[string]*adminConn) // by the member's name that stays with its data
	for _, a := range r.conns {
		if a.state == "" {
			continue
		}
		used := a.state != stateNew
		switch {
		case r.fresh && used:
			return a.wrapErr(sqlstore.Mark(fmt.Errorf("the server is part of a set already, number %d of %d", a.number, a.servers), fs.ErrExist))
		case a.Layout != r.layout && used:
			return a.wrapErr(fmt.Errorf("%w: it was set up for %v, which never changes, the URL says %v", leaf.ErrInvalid, a.Layout, r.layout))
		case given[a.id] != nil:
			return a.wrapErr(fmt.Errorf("%w: it is a copy of %s, or the same server: delete its table leaf_ticket if it is a copy",
				leaf.ErrInvalid, given[a.id].Name))
		case r.cluster != "" && a.cluster != r.cluster && used:
			return a.wrapErr(fmt.Errorf("%w: it belongs to another set of servers than the others", leaf.ErrInvalid))
		}
		given[a.id] = a
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
	if len(r.lost) == 0 {
		r.jump = 0
	}
	r.cluster = cmp.Or(r.cluster, rand.Text())
	return r.complete(given)
}

// complete reports servers of the old set that are neither given nor lost: their counters would
// stay below the others', and their old clients would continue.
func (r *resizer) complete(given map[string]*adminConn) error {
	missing := make(map[string]bool)
	for _, a := range r.conns {
		lacks := false
		var present *adminConn // although it is called lost
		for i, member := range a.members {
			other := given[member]
			switch {
			case other == nil:
				lacks, missing[member] = true, true
			case slices.ContainsFunc(r.lost, other.isCalled):
				present = other
			}
			if len(missing) > len(r.lost) {
				return a.wrapErr(fmt.Errorf("%w: its set has a server number %d that was not named: name every server of the old set, "+
					"those to be taken out too, and say of one whose data is gone for good that it is lost", leaf.ErrInvalid, i+1))
			}
		}
		if lacks && present != nil {
			return present.wrapErr(fmt.Errorf("%w: it is not lost, it has the tables of the set: drop them if they came out of a backup, "+
				"else call that one lost which is", leaf.ErrInvalid))
		}
	}
	if len(missing) < len(r.lost) {
		return fmt.Errorf("%w: %d servers are called lost, and the set lacks %d", leaf.ErrInvalid, len(r.lost), len(missing))
	}
	return nil
}

// prepare gives a server the tables, and a name that stays with its data.
func (r *resizer) prepare(ctx context.Context, a *adminConn) error {
	a.Layout = r.layout
	tables := []string{metaTable, tagTable}
	if a.shared() {
		tables = append(tables, fmt.Sprintf(ticketTable, sharedTable))
	}
	for _, table := range tables {
		if err := a.exec(ctx, table); err != nil {
			return err
		}
	}
	if err := a.checkTables(ctx, a.conn); err != nil {
		return a.wrapErr(err)
	}
	if a.state == "" {
		a.id, a.state = rand.Text(), stateNew
	}
	if a.state != stateNew {
		return nil
	}
	a.cluster = r.cluster
	return a.exec(ctx, `REPLACE INTO leaf_ticket (one, format, state, cluster, member, generation, servers, number, stride, table_per_tag, members)
		VALUES (1, ?, ?, ?, ?, 0, 0, 0, ?, ?, '')`, format, stateNew, a.cluster, a.id, a.Stride, a.TablePerTag)
}

// stop has a server issue no more, and waits for the draws under way.
func (r *resizer) stop(ctx context.Context, a *adminConn) error {
	if a.state != stateNew && a.state != stateRetired {
		a.state = stateResizing
	}
	return a.both(ctx, `UPDATE leaf_ticket SET state = ?`, `UPDATE leaf_ticket_tag SET generation = 0`, a.state)
}

// lostGenerations is more than a lost server can have been ahead of the others: each
// resize that died after its first start put that one server ahead by one.
const lostGenerations = 1 << 20

// read finds the tags of all servers and the highest counters. It chooses the generation and each
// server's share.
func (r *resizer) read(ctx context.Context, _ *adminConn) error {
	r.generation = 1
	r.known = make(map[string]segment.Tag)
	for _, tag := range r.tags {
		r.know(tag)
	}
	for _, a := range r.conns {
		r.generation = max(r.generation, a.generation+1)
		if err := r.readOne(ctx, a); err != nil {
			return a.wrapErr(err)
		}
	}
	if len(r.lost) > 0 {
		r.generation += lostGenerations
	}
	if r.highest > math.MaxInt64-r.jump {
		return fmt.Errorf("%w: the highest counter is %d, and %d above it is none: choose a smaller jump", leaf.ErrOverflow, r.highest, r.jump)
	}
	for i, a := range r.servers { // generation 0: it issues nothing yet
		a.share, a.generation = share{r.layout, int64(len(r.servers)), int64(i + 1)}, 0
	}
	return nil
}

func (r *resizer) readOne(ctx context.Context, a *adminConn) error {
	tags, err := readTags(ctx, a.conn)
	if err == nil && r.layout.shared() {
		var drawn int64
		drawn, err = a.mark(ctx, sharedTable)
		r.highest = max(r.highest, drawn)
	}
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if r.layout.TablePerTag {
			if tag.MaxID, err = a.mark(ctx, r.layout.table(tag.Name)); err != nil {
				return fmt.Errorf("tag %q: %w", tag.Name, err)
			}
		}
		r.know(tag)
	}
	return nil
}

// know notes a tag of a server.
func (r *resizer) know(tag segment.Tag) {
	r.known[tag.Name] = join(r.known[tag.Name], tag)
	r.highest = max(r.highest, tag.MaxID)
}

// lift gives a server every tag, above all drawn IDs. A leaving server keeps its counters: if it
// returns, another resize lifts them.
func (r *resizer) lift(ctx context.Context, a *adminConn) error {
	if r.layout.shared() { // also without a tag
		if err := liftTable(ctx, a.conn, sharedTable, r.highest+r.jump); err != nil {
			return a.wrapErr(err)
		}
	}
	for _, tag := range r.known {
		tag.MaxID += r.jump
		if err := a.place(ctx, tag); err != nil {
			return err
		}
	}
	return nil
}

// start puts a server to work.
func (r *resizer) start(ctx context.Context, a *adminConn) error {
	var members []string
	for _, a := range r.servers {
		members = append(members, a.id)
	}
	return a.both(ctx, `UPDATE leaf_ticket SET state = ?, cluster = ?, generation = ?, servers = ?, number = ?, members = ?`,
		`UPDATE leaf_ticket_tag SET generation = ?`,
		stateReady, r.cluster, r.generation, a.servers, a.number, strings.Join(members, " "), r.generation)
}

func (r *resizer) retire(ctx context.Context, a *adminConn) error {
	return a.exec(ctx, `UPDATE leaf_ticket SET state = ?, members = ''`, stateRetired)
}
