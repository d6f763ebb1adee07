package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// The packet itself sets the session, so that no pool, proxy or reconnect can interfere. In MySQL
// the change from autocommit=0 commits an open transaction.
const (
	setSession = `SET SESSION autocommit = 1, completion_type = 0, sql_mode = 'STRICT_ALL_TABLES'`
	setSteps   = `, auto_increment_increment = %d, auto_increment_offset = %d`
)

// answer selects the result of the statement before it.
const answer = `;
SELECT ROW_COUNT(), LAST_INSERT_ID(), @@server_id, COALESCE((SELECT cluster FROM leaf_ticket WHERE one = 1), ''), %s, @@auto_increment_increment, @@auto_increment_offset,
	@@GLOBAL.auto_increment_increment, @@GLOBAL.auto_increment_offset,
	t.generation, COALESCE(t.next_id, 0), COALESCE(t.step, 1)
	FROM (SELECT 1) AS one LEFT JOIN leaf_ticket_tag AS t ON t.name = ?`

// ticketDraw is Flickr's statement, for a tag that exists in the generation. The lock on
// the tag's row is shared; a change of the generation waits for the draws under way.
const ticketDraw = "REPLACE INTO `%s` (stub) " +
	"SELECT 'a' FROM leaf_ticket_tag WHERE name = ? AND generation = ? LOCK IN SHARE MODE"

// blockDraw puts the old counter into LAST_INSERT_ID(); this program computes the new one from it.
// The next blocks belong to the other servers.
const blockDraw = `UPDATE leaf_ticket_tag
	SET next_id = LAST_INSERT_ID(next_id) + LEAST(?, %[1]d - next_id %% %[1]d) + IF(? >= %[1]d - next_id %% %[1]d, %[2]d, 0)
	WHERE next_id BETWEEN 0 AND ? AND next_id DIV %[1]d %% %[3]d = %[4]d AND name = ? AND generation = ?`

// A drawResult is a server's answer to a draw.
type drawResult struct {
	rows               int64  // changed rows
	last               uint64 // LAST_INSERT_ID(): says something only if rows is not 0
	server             int64
	cluster            string
	open               bool // a transaction is
	increment, offset  int64
	globalInc, globOff int64
	generation         sql.Null[int64] // of the tag's row; null: there is none
	next, step         int64
}

// draw draws up to n IDs that follow each other, or up to the tag's step if n is 0. Of single
// tickets it draws one.
func (f *facts) draw(ctx context.Context, conn *sql.Conn, tag string, n int64) (segment.Grant, error) {
	if n == 0 && f.Stride > 0 {
		// A change of the step between the two packets does no harm: the range follows from the n
		// of the second one.
		known, err := findTag(ctx, conn, tag)
		if err != nil {
			return segment.Grant{}, err
		}
		n = known.Step
	}
	d, err := f.send(ctx, conn, tag, n)
	if err == nil {
		err = f.judge(d)
	}
	if err != nil {
		return segment.Grant{}, err
	}
	start := int64(d.last)
	end := start + 1
	if f.Stride > 0 {
		end = start + min(n, f.Stride-start%f.Stride)
	}
	return segment.Grant{
		Range:  leaf.Range{Start: start, End: end},
		Step:   max(d.step, 1),
		Source: f.source(),
		Server: strconv.FormatInt(d.server, 10),
		Store:  d.cluster,
	}, nil
}

// send sends the statement of a draw. It distinguishes an unknown tag from a missing table.
func (f *facts) send(ctx context.Context, conn *sql.Conn, tag string, n int64) (d drawResult, err error) {
	s := f.share
	table, query, args := s.table(tag), setSession, []any(nil)
	if s.Stride > 0 {
		query += fmt.Sprintf(";\n"+blockDraw, s.Stride, (s.servers-1)*s.Stride, s.servers, s.number-1)
		args = []any{n, n, s.limit()}
	} else {
		query += fmt.Sprintf(setSteps+";\n"+ticketDraw, s.servers, s.number, table)
		err = f.checkTickets(ctx, conn, table)
	}
	if err == nil {
		query += fmt.Sprintf(answer, f.open)
		err = conn.QueryRowContext(ctx, query, append(args, []byte(tag), f.generation, []byte(tag))...).
			Scan(&d.rows, &d.last, &d.server, &d.cluster, &d.open, &d.increment, &d.offset, &d.globalInc, &d.globOff, &d.generation, &d.next, &d.step)
		if !mysqlconn.IsNumber(err, mysqlconn.NoTable) {
			return d, err
		}
		f.tables.Delete(table)
	}
	_, unknown := findTag(ctx, conn, tag)
	return d, cmp.Or(unknown, err)
}

// judge reports the fault of a draw, or the reason for an empty one.
func (f *facts) judge(d drawResult) error {
	s := f.share
	switch {
	case d.open:
		return fmt.Errorf("%w: a transaction was left open on it: give Leaf a pool of its own", sqlstore.ErrSession)
	case d.rows < 0 || s.Stride > 0 && d.rows > 1: // -1: ROW_COUNT() speaks of another statement
		return fmt.Errorf("%w: the draw changed %d rows: something between here and the server splits or rewrites the packet",
			sqlstore.ErrSession, d.rows)
	case d.rows == 0 && !d.generation.Valid:
		return leaf.ErrUnknownTag
	case d.rows == 0 && d.generation.V != f.generation:
		return errResized
	case s.Stride == 0:
		return s.judgeTicket(d)
	case d.rows == 0 && d.next > s.limit():
		return fmt.Errorf("%w: the counter is at %d", leaf.ErrOverflow, d.next)
	case d.rows == 0:
		return fmt.Errorf("%w: the counter is at %d, which is not in a block of server %d of %d: "+
			"it was changed by hand; a resize with the same servers puts it right", segment.ErrNeedsResize, d.next, s.number, s.servers)
	}
	return nil
}

// judgeTicket is the rest of judge for a single ticket.
func (s share) judgeTicket(d drawResult) error {
	switch {
	case d.increment != s.servers || d.offset != s.number:
		return fmt.Errorf("%w: it steps by %d from %d, not by %d from %d: something between here and the server changes the settings",
			sqlstore.ErrSession, d.increment, d.offset, s.servers, s.number)
	case (d.globalInc != s.servers || d.globOff != s.number) && (d.globalInc != 1 || d.globOff != 1):
		return fmt.Errorf("the server's auto_increment_increment is %d and its auto_increment_offset %d: programs that draw tickets without Leaf "+
			"draw those of other servers: set them to %d and %d, or both to 1 where only Leaf draws", d.globalInc, d.globOff, s.servers, s.number)
	case d.rows == 0:
		return errors.New("the server drew no ticket although it has the tag")
	case d.last%uint64(s.servers) != uint64(s.number)%uint64(s.servers):
		return fmt.Errorf("%w: ticket %d does not belong to server %d of %d", sqlstore.ErrSession, d.last, s.number, s.servers)
	case d.last >= math.MaxInt64:
		return fmt.Errorf("%w: ticket %d", leaf.ErrOverflow, d.last)
	}
	return nil
}

func (f *facts) source() string { return strconv.FormatInt(f.number, 10) }
