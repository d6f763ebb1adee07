package foreign

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/leaf-id/leaf/internal/sqlstore"
)

// A column is one of a table, in small letters.
type column struct{ kind, extra, key string }

// A table has its columns by their names in small letters.
type table struct {
	name    string
	columns map[string]column
}

func (t table) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { _, ok := t.columns[name]; return !ok })
}

// A system is one whose tables are known by name and columns.
type system struct {
	name    string
	table   string // in small letters; "": any with the columns
	columns []string
	read    func(*reader, table) error
}

// systems is the one table of known systems with an SQL database.
var systems = []system{
	{javaLeaf, "leaf_alloc", []string{"biz_tag", "max_id", "step"}, (*reader).leafAlloc},
	{"TinyID", "tiny_id_info", []string{"biz_type", "max_id", "step", "delta", "remainder", "version"}, (*reader).tinyID},
	{"CosId", "cosid", []string{"name", "last_max_id"}, (*reader).cosID},
	{"CosId", "cosid_machine", []string{"namespace", "machine_id", "last_timestamp"}, (*reader).cosIDMachine},
	{"uid-generator", "worker_node", []string{"id", "host_name", "port"}, (*reader).workerNode},
	{"ticket server", "", []string{"id", "stub"}, (*reader).tickets},
}

// Tables names the known tables, for people.
const Tables = "leaf_alloc (Java Leaf), tiny_id_info (TinyID), cosid (CosId), tables like Tickets64 with columns id and stub (ticket servers), " +
	"WORKER_NODE (uid-generator)"

type reader struct {
	ctx    context.Context
	db     *sql.DB
	system string
	found  Found
}

// MySQL reads the known tables of a MySQL or MariaDB database, and the AUTO_INCREMENT of the tables
// in increments.
func MySQL(ctx context.Context, db *sql.DB, increments []string) (Found, error) {
	r := &reader{ctx: ctx, db: db}
	tables, err := r.tables()
	if err != nil {
		return Found{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		for _, s := range systems {
			t := tables[name]
			if !s.is(t) {
				continue
			}
			r.system = s.name
			if err := s.read(r, t); err != nil {
				return Found{}, fmt.Errorf("read %s: %w", t.name, err)
			}
		}
	}
	for _, name := range increments {
		t, ok := tables[name]
		if !ok {
			return Found{}, fmt.Errorf("read %s: the database has no such table", name)
		}
		if err := r.increment(t); err != nil {
			return Found{}, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return r.found, nil
}

func (s system) is(t table) bool {
	if s.table == "" { // a ticket server's
		return t.has(s.columns...) && strings.Contains(t.columns["id"].extra, autoIncrement) && t.columns["stub"].key != ""
	}
	return strings.ToLower(t.name) == s.table && t.has(s.columns...)
}

const autoIncrement = "auto_increment"

func (r *reader) tables() (map[string]table, error) {
	all := make(map[string]table)
	err := r.each(`SELECT table_name, LOWER(column_name), LOWER(column_type), LOWER(extra), LOWER(column_key)
		FROM information_schema.columns WHERE table_schema = DATABASE()`, func(scan func(...any) error) error {
		var name, col string
		var c column
		err := scan(&name, &col, &c.kind, &c.extra, &c.key)
		if all[name].name == "" {
			all[name] = table{name, make(map[string]column)}
		}
		all[name].columns[col] = c
		return err
	})
	return all, err
}

func (r *reader) each(query string, do func(scan func(...any) error) error) error {
	rows, err := r.db.QueryContext(r.ctx, query)
	_, err = sqlstore.Collect(rows, err, func(scan func(...any) error) (none struct{}, err error) { return none, do(scan) })
	return err
}

func (r *reader) add(c Counter) {
	c.System = r.system
	r.found.Counters = append(r.found.Counters, c)
}

func (r *reader) note(format string, args ...any) {
	r.found.Notes = append(r.found.Notes, r.system+": "+fmt.Sprintf(format, args...))
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// A highest is a column with the highest handed out number. Unsigned ones reach beyond int64.
type highest struct{ sql.Null[uint64] }

var errNegative = errors.New("its counter is negative, or none (NULL)")

func (h highest) next() (int64, string) {
	switch {
	case !h.Valid:
		return 0, errNegative.Error()
	case h.V >= math.MaxInt64:
		return 0, fmt.Sprintf("its counter %d is beyond 2^63, so that no ID follows", h.V)
	}
	return int64(h.V) + 1, ""
}

// leafAlloc reads Java Leaf's table: max_id is the next number.
func (r *reader) leafAlloc(t table) error {
	return r.each(`SELECT biz_tag, IF(max_id < 0, NULL, max_id), COALESCE(step, 0) FROM `+quote(t.name), func(scan func(...any) error) error {
		c, next := Counter{Table: t.name}, sql.Null[int64]{}
		err := scan(&c.Name, &next, &c.Step)
		if c.Next = next.V; !next.Valid {
			c.Skip = errNegative.Error()
		}
		r.add(c)
		return err
	})
}

// tinyID reads TinyID's table: max_id is the highest number that any segment contains.
func (r *reader) tinyID(t table) error {
	query := `SELECT biz_type, IF(max_id < 0, NULL, max_id), COALESCE(step, 0), COALESCE(delta, 1), COALESCE(remainder, 0) FROM ` + quote(t.name)
	return r.each(query, func(scan func(...any) error) error {
		c, high := Counter{Table: t.name}, highest{}
		err := scan(&c.Name, &high.Null, &c.Step, &c.share.of, &c.share.remainder)
		c.Next, c.Skip = high.next()
		r.add(c)
		return err
	})
}

// cosID reads the segments of CosId in JDBC.
func (r *reader) cosID(t table) error {
	return r.each(`SELECT name, last_max_id FROM `+quote(t.name), func(scan func(...any) error) error {
		var name string
		var high highest
		err := scan(&name, &high.Null)
		r.addCosID(t.name, name, high)
		return err
	})
}

// addCosID adds a counter of CosId, unless CosId groups its counters by date.
func (r *reader) addCosID(table, name string, high highest) {
	if strings.Contains(name, "@") {
		r.note("%s counts for one period, and is not taken over", name)
		return
	}
	c := Counter{Table: table, Name: name}
	c.Next, c.Skip = high.next()
	r.add(c)
}

func (r *reader) cosIDMachine(t table) error {
	return r.each(`SELECT namespace, COUNT(*), MAX(machine_id), MAX(last_timestamp) FROM `+quote(t.name)+` GROUP BY namespace`,
		func(scan func(...any) error) error {
			var namespace string
			var count, machine, last int64
			err := scan(&namespace, &count, &machine, &last)
			r.noteMachines(namespace, count, machine, last)
			return err
		})
}

func (r *reader) noteMachines(namespace string, count, highest, last int64) {
	r.note("namespace %s has %d machine IDs, the highest is %d, and the latest time is %d (Unix milliseconds). Nothing is copied: "+
		"give the servers worker IDs above it, or start them when the last machine has stopped", namespace, count, highest, last)
}

func (r *reader) workerNode(t table) error {
	var rows int64
	var high sql.Null[int64]
	err := r.db.QueryRowContext(r.ctx, `SELECT COUNT(*), MAX(ID) FROM `+quote(t.name)).Scan(&rows, &high)
	if err == nil {
		r.note("%s has %d rows, and the highest worker ID is %d. Nothing is copied: servers can use the table as it is, or other bits for their worker IDs",
			t.name, rows, high.V)
	}
	return err
}

// tickets reads the table of a ticket server. Several servers go up in steps of their number.
func (r *reader) tickets(t table) error {
	c, err := r.autoIncrement(t, "id")
	if err != nil {
		return err
	}
	var cluster int64
	err = r.db.QueryRowContext(r.ctx, `SELECT @@global.auto_increment_increment, @@global.auto_increment_offset`).Scan(&c.share.of, &c.share.remainder)
	if err == nil {
		err = r.each(`SHOW GLOBAL VARIABLES WHERE Variable_name = 'wsrep_on' AND Value = 'ON'`, func(scan func(...any) error) error {
			cluster++
			var name, value string
			return scan(&name, &value)
		})
	}
	if c.share.of > 0 {
		c.share.remainder %= c.share.of
	}
	if cluster > 0 { // the servers have one table
		c.share = share{}
	}
	r.add(c)
	return err
}

func (r *reader) increment(t table) error {
	r.system = "AUTO_INCREMENT"
	for name, col := range t.columns {
		if !strings.Contains(col.extra, autoIncrement) {
			continue
		}
		c, err := r.autoIncrement(t, name)
		if err != nil {
			return err
		}
		if !strings.HasPrefix(col.kind, "bigint") {
			r.note("column %s of %s is %s: make it BIGINT before it gets IDs from elsewhere", name, t.name, col.kind)
		}
		r.add(c)
		return nil
	}
	return errors.New("the table has no AUTO_INCREMENT column")
}

var nextIncrement = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\).* AUTO_INCREMENT=(\d+)`)
})

// autoIncrement returns the counter of a column. The definition of the table shows the counter as
// it is. The table of information_schema may be a day old. A rolled-back INSERT uses up its number.
func (r *reader) autoIncrement(t table, col string) (Counter, error) {
	c := Counter{Table: t.name, Name: t.name}
	var high highest
	if err := r.db.QueryRowContext(r.ctx, `SELECT COALESCE(MAX(IF(`+quote(col)+` < 0, 0, `+quote(col)+`)), 0) FROM `+quote(t.name)).Scan(&high.Null); err != nil {
		return c, err
	}
	c.Next, c.Skip = high.next()
	var name, definition string
	if err := r.db.QueryRowContext(r.ctx, `SHOW CREATE TABLE `+quote(t.name)).Scan(&name, &definition); err != nil {
		return c, err
	}
	if m := nextIncrement().FindStringSubmatch(definition); m != nil {
		next, err := strconv.ParseInt(m[1], 10, 64)
		if err != nil {
			c.Skip = "its counter " + m[1] + " is beyond 2^63"
		}
		c.Next = max(c.Next, next)
	}
	return c, nil
}
