package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// The table of Java Leaf, and the variant with a key of its own.
const (
	javaTable = "CREATE TABLE `leaf_alloc` (`biz_tag` varchar(128) NOT NULL DEFAULT '', `max_id` bigint(20) NOT NULL DEFAULT '1'," +
		" `step` int(11) NOT NULL, `description` varchar(256) DEFAULT NULL," +
		" `update_time` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP," +
		" PRIMARY KEY (`biz_tag`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"

	surrogateTable = "CREATE TABLE `leaf_alloc` (`id` bigint(20) unsigned NOT NULL AUTO_INCREMENT, `biz_tag` varchar(128) NOT NULL," +
		" `max_id` bigint(20) NOT NULL DEFAULT '1', `step` int(11) NOT NULL, `desc` varchar(256) DEFAULT NULL," +
		" `create_time` datetime NOT NULL DEFAULT CURRENT_TIMESTAMP," +
		" `update_time` datetime NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP," +
		" PRIMARY KEY (`id`), UNIQUE KEY `uk_biz_tag` (`biz_tag`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin"
)

// mysqlConfig is the configuration that the package documentation asks for.
func mysqlConfig(t testing.TB, server *testserver.MariaDBServer, database string) *gomysql.Config {
	t.Helper()
	cfg, err := gomysql.ParseDSN(server.DSN(database))
	if err != nil {
		t.Fatal(err)
	}
	cfg.MultiStatements, cfg.InterpolateParams = true, true
	cfg.Params = map[string]string{"sql_mode": "'STRICT_ALL_TABLES'", "autocommit": "1"}
	cfg.Logger = &gomysql.NopLogger{}
	return cfg
}

func mysqlDB(t testing.TB, cfg *gomysql.Config) *sql.DB {
	t.Helper()
	connector, err := gomysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return sqltest.Pool(t, connector)
}

func openMySQL(t testing.TB, db *sql.DB) *sqldb.Store { return suite.OpenStore(t, db) }

// newMySQL makes a database by the statements, and a store in it.
func newMySQL(t testing.TB, statements ...string) (*sqldb.Store, string) {
	t.Helper()
	name := mariadb.NewDatabase(t)
	mariadb.Exec(t, name, statements...)
	return openMySQL(t, mysqlDB(t, mysqlConfig(t, mariadb, name))), name
}

func TestMySQLStore(t *testing.T) {
	tables := map[string]struct {
		table string
		caps  drivertest.StoreCaps
	}{
		"java":      {javaTable, drivertest.StoreCaps{}},
		"surrogate": {surrogateTable, drivertest.StoreCaps{NoDescriptions: true}},
		"utf8mb3":   {strings.ReplaceAll(javaTable, "utf8mb4", "utf8mb3"), drivertest.StoreCaps{BMPOnly: true}},
	}
	for name, tt := range tables {
		t.Run(name, func(t *testing.T) {
			if name != "java" { // the same statements
				testserver.Long(t)
			}
			testMySQLStore(t, tt.table, tt.caps)
		})
	}
}

func testMySQLStore(t *testing.T, table string, caps drivertest.StoreCaps) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		database := mariadb.NewDatabase(t)
		mariadb.Exec(t, database, table)
		return drivertest.StoreBackend{
			Open: func(t testing.TB) segment.Store {
				s := openMySQL(t, mysqlDB(t, mysqlConfig(t, mariadb, database)))
				if caps.NoDescriptions {
					return undescribed{s}
				}
				return s
			},
			Caps: caps,
		}
	})
}

// undescribed ignores descriptions, as the suite expects of a state without place
// for them; the store itself refuses them.
type undescribed struct{ *sqldb.Store }

func (u undescribed) Create(ctx context.Context, tag segment.Tag) error {
	if tag.Check() == nil {
		tag.Options = tag.Options.Others()
	}
	return u.Store.Create(ctx, tag)
}

func (u undescribed) Alter(ctx context.Context, name string, change segment.Change) (segment.Tag, error) {
	if change.Check() == nil {
		change.Options = maps.Clone(change.Options)
		delete(change.Options, "description")
	}
	return u.Store.Alter(ctx, name, change)
}

// LAST_INSERT_ID() keeps its value when the UPDATE changes nothing: only the count
// of rows tells.
func TestMySQLStickyLastInsertID(t *testing.T) {
	_, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10), ('full', 9223372036854775800, 10)")
	db := mysqlDB(t, mysqlConfig(t, mariadb, database))
	db.SetMaxOpenConns(1)
	s := openMySQL(t, db)
	if _, err := s.Advance(t.Context(), "order", 100); err != nil {
		t.Fatal(err)
	}
	var sticky int64
	if err := db.QueryRow("SELECT LAST_INSERT_ID()").Scan(&sticky); err != nil || sticky != 101 {
		t.Fatalf("LAST_INSERT_ID() = %d, %v: the trap that this test is about is not set", sticky, err)
	}
	if g, err := s.Advance(t.Context(), "gone", 100); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("unknown tag after another's advance: %v, %v", g, err)
	}
	if g, err := s.Advance(t.Context(), "full", 100); !errors.Is(err, leaf.ErrOverflow) {
		t.Errorf("full counter after another's advance: %v, %v", g, err)
	}
}

func TestMySQLCollations(t *testing.T) {
	for _, collation := range []string{"utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb3_general_ci", "latin1_swedish_ci", "utf8mb4_bin", "ucs2_general_ci"} {
		t.Run(collation, func(t *testing.T) { testCollation(t, collation) })
	}
}

func testCollation(t *testing.T, collation string) {
	charset, _, _ := strings.Cut(collation, "_")
	table := strings.Replace(javaTable, "utf8mb4 COLLATE=utf8mb4_bin", charset+" COLLATE="+collation, 1)
	s, _ := newMySQL(t, table)
	if err := s.Create(t.Context(), segment.Tag{Name: "Café", MaxID: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"café", "CAFÉ", "Cafe", "Café ", "Café  ", "订单", "😀", "Cafe\u0301"} {
		if g, err := s.Advance(t.Context(), name, 1); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("advance %q: %v, %v", name, g, err)
		}
		if err := s.Return(t.Context(), name, segment.Grant{Range: leaf.Range{Start: 0, End: 1}}, 0); err == nil {
			t.Errorf("return to %q was done", name)
		}
		if _, err := s.Alter(t.Context(), name, segment.Change{Step: new(int64(5))}); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("alter %q: %v", name, err)
		}
		if err := s.Delete(t.Context(), name); !errors.Is(err, leaf.ErrUnknownTag) {
			t.Errorf("delete %q: %v", name, err)
		}
		// The other name fits next to it, or gets a clear refusal.
		err := s.Create(t.Context(), segment.Tag{Name: name, MaxID: 1000, Step: 10})
		if err != nil && !errors.Is(err, leaf.ErrTagExists) && !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("create %q: %v", name, err)
		}
		if err == nil {
			if err := s.Delete(t.Context(), name); err != nil {
				t.Error(err)
			}
		}
	}
	if g, err := s.Advance(t.Context(), "Café", 1); err != nil || g.Range.Start != 1 || g.Step != 10 {
		t.Errorf("the tag itself: %v, %v", g, err)
	}
}

func TestMySQLDescription(t *testing.T) {
	s, _ := newMySQL(t, surrogateTable)
	if err := s.Create(t.Context(), segment.Tag{Name: "order", Step: 1, Options: segment.Describe("x")}); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("create with a description: %v", err)
	}
	if err := s.Create(t.Context(), segment.Tag{Name: "order", Step: 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Alter(t.Context(), "order", segment.Change{Step: new(int64(9)), Options: segment.TagOptions{"description": "x"}}); !errors.Is(err, leaf.ErrUnsupported) {
		t.Errorf("alter with a description: %v", err)
	}
	tag, err := s.Alter(t.Context(), "order", segment.Change{Options: segment.TagOptions{"description": ""}})
	if err != nil || tag.Step != 1 {
		t.Errorf("%+v, %v: half of the refused change was made", tag, err)
	}
}
