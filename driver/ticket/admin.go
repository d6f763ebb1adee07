package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// lockWait is how long one administrative call waits for another.
const lockWait = 20 * time.Second

// A desk is one server during an administrative call: a connection, kept from first
// to last, that holds the server's lock for such calls.
type desk struct {
	*member
	conn *sql.Conn
	meta *meta // nil: none
	open string
}

// atDesks runs do with a desk at every member, none of which may be down. The locks are
// taken in the order of the names, which is the same for everyone. A lock goes with its connection,
// and all that is done to a server is sent on that one: so no two such calls ever mix, also
// when one loses a connection.
func atDesks(ctx context.Context, members []*member, do func([]*desk) error) error {
	var desks []*desk
	defer func() {
		for _, d := range desks {
			d.leave()
		}
	}()
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b *member) int { return cmp.Compare(a.Name, b.Name) }) {
		d, err := sitDown(ctx, m)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, explain(err))
		}
		desks = append(desks, d)
	}
	slices.SortFunc(desks, func(a, b *desk) int { // back to the caller's order
		return slices.Index(members, a.member) - slices.Index(members, b.member)
	})
	return do(desks)
}

func sitDown(ctx context.Context, m *member) (*desk, error) {
	conn, err := m.DB.Conn(ctx)
	if err != nil {
		return nil, err
	}
	d := &desk{member: m, conn: conn}
	if err := d.lock(ctx); err != nil {
		d.leave()
		return nil, err
	}
	return d, nil
}

func (d *desk) lock(ctx context.Context) error {
	if err := checkSession(ctx, d.conn); err != nil {
		return err
	}
	var got sql.Null[int]
	err := d.conn.QueryRowContext(ctx, `SELECT GET_LOCK(LEFT(CONCAT('leaf_ticket.', DATABASE()), 64), ?)`, lockWait.Seconds()).Scan(&got)
	switch {
	case err != nil:
		return err
	case got.V != 1:
		return errors.New("another administrative call is under way on the server: try again later")
	}
	if _, err := d.conn.ExecContext(ctx, `SET SESSION autocommit = 1, sql_mode = 'STRICT_ALL_TABLES'`); err != nil {
		return err
	}
	var f facts
	if err := checkServer(ctx, d.conn, &f); err != nil {
		return err
	}
	d.open = f.open
	d.meta, err = readMeta(ctx, d.conn)
	return err
}

// leave gives up the lock, or the whole connection where that fails.
func (d *desk) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), defaultTimeout)
	defer cancel()
	if _, err := d.conn.ExecContext(ctx, `DO RELEASE_LOCK(LEFT(CONCAT('leaf_ticket.', DATABASE()), 64))`); err != nil {
		_ = d.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	d.conn.Close()
}

func (d *desk) exec(ctx context.Context, query string, args ...any) error {
	if _, err := d.conn.ExecContext(ctx, query, args...); err != nil {
		return d.blame(err)
	}
	return nil
}

func (d *desk) blame(err error) error { return fmt.Errorf("%s: %w", d.Name, explain(err)) }

// both commits two statements together.
func (d *desk) both(ctx context.Context, first, second string, firstArgs, secondArgs []any) error {
	tx, err := d.conn.BeginTx(ctx, nil)
	if err != nil {
		return d.blame(err)
	}
	if _, err = tx.ExecContext(ctx, first, firstArgs...); err == nil {
		_, err = tx.ExecContext(ctx, second, secondArgs...)
	}
	if err != nil {
		_ = tx.Rollback() // the first error is the one to tell
		return d.blame(err)
	}
	if err := tx.Commit(); err != nil {
		return d.blame(err)
	}
	return nil
}

// mark draws a ticket and returns one past it, or 0 if the table never dealt one. The row
// that is left of the tickets does not tell: of two drawn at once it may be the lower.
func (d *desk) mark(ctx context.Context, table string) (int64, error) {
	var name, definition string
	if err := d.conn.QueryRowContext(ctx, "SHOW CREATE TABLE `"+table+"`").Scan(&name, &definition); err != nil {
		return 0, err
	}
	if !strings.Contains(definition, "AUTO_INCREMENT=") {
		return 0, nil
	}
	var last uint64
	err := d.conn.QueryRowContext(ctx, "REPLACE INTO `"+table+"` (stub) VALUES ('a'); SELECT LAST_INSERT_ID()").Scan(&last)
	return int64(min(last, math.MaxInt64-1)) + 1, err
}

// lift has every later ticket of a table be floor or above. Two lifts at once, or one
// beside a draw, end in a deadlock now and then: the server undoes one of them.
func (d *desk) lift(ctx context.Context, table string, floor int64) error {
	if floor <= 1 { // where a fresh table begins; an id of 0 means the next one
		return nil
	}
	last := floor - 1
	for try := 1; ; try++ {
		_, err := d.conn.ExecContext(ctx, fmt.Sprintf("REPLACE INTO `%[1]s` (id, stub) SELECT ?, 'a' FROM (SELECT 1) AS one "+
			"WHERE NOT EXISTS (SELECT 1 FROM `%[1]s` AS t WHERE t.id >= ?)", table), last, last)
		if err == nil {
			return nil
		}
		if !isMySQL(err, mysqlDeadlock) || try == 10 {
			return d.blame(err)
		}
	}
}

// put writes the row of a tag; a counter is only ever raised.
func (d *desk) put(ctx context.Context, r row) error {
	return d.exec(ctx, `INSERT INTO leaf_ticket_tag (name, generation, next_id, step, description) VALUES (?, ?, ?, ?, ?)
		ON DUPLICATE KEY UPDATE generation = VALUES(generation), next_id = GREATEST(next_id, VALUES(next_id)),
			step = VALUES(step), description = VALUES(description)`,
		[]byte(r.name), r.generation, r.next, r.step, r.description)
}

// place has a server draw a tag's IDs from floor on, in a share of its own.
func (d *desk) place(ctx context.Context, r row, floor int64, l Layout, s share) error {
	if l.Stride > 0 {
		r.next = s.align(max(floor, r.next))
		return d.put(ctx, r)
	}
	table := l.table(r.name)
	if l.TablePerTag {
		if err := d.exec(ctx, fmt.Sprintf(ticketTable, table)); err != nil {
			return err
		}
	}
	if err := d.lift(ctx, table, floor); err != nil {
		return err
	}
	return d.put(ctx, r)
}
