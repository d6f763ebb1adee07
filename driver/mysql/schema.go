package mysql

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/mysqlconn"
	"github.com/leaf-id/leaf/internal/sqlstore"
	"github.com/leaf-id/leaf/segment"
)

// A table is one of those that Leaf keeps in a MySQL database.
type table struct {
	sqlstore.Table
	create   string            // the statement that creates it
	meanings map[uint16]error  // the errors of package leaf for error numbers
	check    func(found) error // reports why its columns must not be used
}

// A found table is the columns of one, by their names in small letters.
type found map[string]struct {
	kind, extra string
	key         bool // part of the primary key
}

// keyIs reports whether the primary key is the column alone.
func (f found) keyIs(name string) bool {
	for other, column := range f {
		if column.key != (other == name) {
			return false
		}
	}
	return true
}

var (
	// Java Leaf's table, whose names compare byte for byte but for trailing spaces.
	allocTable = table{sqlstore.Alloc, `CREATE TABLE leaf_alloc (
	biz_tag     VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT '',
	max_id      BIGINT NOT NULL DEFAULT 1,
	step        INT NOT NULL,
	description VARCHAR(256) CHARACTER SET utf8mb4 DEFAULT NULL,
	update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	PRIMARY KEY (biz_tag)
) ENGINE=InnoDB`, map[uint16]error{
		mysqlconn.Duplicate: fmt.Errorf("%w, or one that the collation of biz_tag does not tell from it (by case, accents or trailing spaces)",
			leaf.ErrTagExists),
		1267: leaf.ErrUnknownTag, 3988: leaf.ErrUnknownTag, // the name has characters that the column cannot hold
		1366: errCannotHold, 1406: errCannotHold, 3854: errCannotHold,
		mysqlconn.TooLarge: leaf.ErrOverflow, mysqlconn.OutOfRange: leaf.ErrOverflow,
	}, checkAlloc}

	workerTable = table{sqlstore.Worker, `CREATE TABLE leaf_worker (
	worker      BIGINT NOT NULL,
	record      TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
	PRIMARY KEY (worker)
) ENGINE=InnoDB`, map[uint16]error{
		mysqlconn.Duplicate: sqlstore.ErrMoved,
		1267:                errCannotHold, 1366: errCannotHold, 1406: errCannotHold, 3854: errCannotHold, 3988: errCannotHold,
	}, checkWorkers}
)

// errUnversioned reports a table in which a range that was lost and granted again looks as before.
// To set update_time here would not help: Java servers write to the row too.
var errUnversioned = errors.New("update_time of leaf_alloc does not change with each write, so unused IDs are not given back: " +
	"ALTER TABLE leaf_alloc MODIFY update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP")

var errCannotHold = fmt.Errorf("%w: the table's column cannot hold it", leaf.ErrInvalid)

func checkAlloc(f found) error {
	if kind := f["max_id"].kind; !strings.HasPrefix(kind, "bigint") || strings.Contains(kind, "unsigned") {
		return fmt.Errorf("%w: max_id is of type %s, which cannot hold every ID or deals one range for ever at its end: "+
			"ALTER TABLE leaf_alloc MODIFY max_id BIGINT NOT NULL DEFAULT 1", leaf.ErrUnsupported, kind)
	}
	return nil
}

func checkWorkers(f found) error {
	record := f["record"].kind
	switch {
	case !f.keyIs("worker"):
		return fmt.Errorf("%w: worker is not the primary key: ALTER TABLE leaf_worker ADD PRIMARY KEY (worker)", leaf.ErrUnsupported)
	case !strings.HasPrefix(f["worker"].kind, "bigint"):
		return fmt.Errorf("%w: worker is of type %s: ALTER TABLE leaf_worker MODIFY worker BIGINT NOT NULL", leaf.ErrUnsupported, f["worker"].kind)
	case record != "text" && record != "mediumtext" && record != "longtext":
		return fmt.Errorf("%w: record is of type %s, which cannot hold every record: "+
			"ALTER TABLE leaf_worker MODIFY record TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL", leaf.ErrUnsupported, record)
	}
	return nil
}

// checkTable refuses an unfit table, and learns its properties.
func checkTable(s *session, f *facts, t *table) error {
	rows, err := s.Query(`SELECT ` + t.Columns + ` FROM ` + t.Name + ` LIMIT 0`)
	if err == nil {
		err = rows.Close()
	}
	if err == nil {
		f.engine, err = mysqlconn.CheckEngine(s.Context, s.On, t.Name, t.Stake)
	}
	if err != nil {
		return err
	}
	columns := make(found)
	rows, err = s.Query(`SELECT LOWER(column_name), LOWER(column_type), LOWER(extra), column_key = 'PRI'
		FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = $1`, t.Name)
	_, err = sqlstore.Collect(rows, err, func(scan func(...any) error) (name string, err error) {
		c := columns[""]
		err = scan(&name, &c.kind, &c.extra, &c.key)
		columns[name] = c
		return name, err
	})
	if err != nil {
		return err
	}
	if _, ok := columns["description"]; ok {
		f.dialect.Description = `COALESCE(description, '')`
	}
	if t == &allocTable && !strings.Contains(columns["update_time"].extra, "on update current_timestamp") {
		f.dialect.Unversioned = errUnversioned
	}
	return t.check(columns)
}

// Create creates the table, after a check of the server.
func (p *pool) Create(ctx context.Context, tags []segment.Tag) error {
	conn, err := p.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := openable(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, p.table.create); err != nil || !p.table.Identified {
		return err
	}
	err = p.use(ctx, func(s *session) error { return s.RenewIdentity() })
	if err == nil && len(tags) > 0 {
		err = p.write(ctx, "", func(s *sqlstore.Session) error { return s.Fill(tags) })
	}
	if err != nil {
		return fmt.Errorf("the table was created, its tags were not: %w", err)
	}
	return nil
}

// Exists reports whether the table exists.
func (p *pool) Exists(ctx context.Context) (bool, error) {
	rows, err := p.db.QueryContext(ctx, `SELECT 1 FROM `+p.table.Name+` LIMIT 0`)
	if mysqlconn.IsNumber(err, mysqlconn.NoTable) {
		return false, nil
	}
	if err == nil {
		err = rows.Close()
	}
	return err == nil, err
}
