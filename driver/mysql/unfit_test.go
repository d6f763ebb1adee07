package mysql_test

import (
	"errors"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

func TestMySQLRefusesUnfitTables(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(javaTable, old, new, 1) }
	tests := map[string]struct {
		table, want string
	}{
		"int":       {replace("bigint(20)", "int(11)"), "MODIFY max_id BIGINT"},
		"unsigned":  {replace("bigint(20)", "bigint(20) unsigned"), "MODIFY max_id BIGINT"},
		"decimal":   {replace("bigint(20)", "decimal(30)"), "MODIFY max_id BIGINT"},
		"myisam":    {replace("InnoDB", "MyISAM"), "ENGINE=InnoDB"},
		"aria":      {replace("InnoDB", "Aria"), "ENGINE=InnoDB"},
		"memory":    {replace("InnoDB", "MEMORY"), "ENGINE=InnoDB"},
		"no column": {replace("`update_time`", "`updated`"), "lacks a column"},
		"no table":  {"SELECT 1", "no table leaf_alloc"},
		"view":      {"CREATE VIEW leaf_alloc AS SELECT 'a' biz_tag, 1 max_id, 1 step, NOW() update_time", "view"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s, database := newMySQL(t, tt.table)
			for _, n := range []int64{0, 1} {
				if _, err := s.Advance(t.Context(), "order", n); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Advance(%d): %v, want %q", n, err, tt.want)
				}
			}
			// Once the table is well, so is the store.
			mariadb.Exec(t, database, "DROP TABLE IF EXISTS leaf_alloc", "DROP VIEW IF EXISTS leaf_alloc", javaTable)
			if err := s.Create(t.Context(), segment.Tag{Name: "order", Step: 1}); err != nil {
				t.Errorf("after the cure: %v", err)
			}
		})
	}
}

func TestMySQLRefusesUnfitSessions(t *testing.T) {
	tests := map[string]struct {
		harm func(*gomysql.Config)
		want string
	}{
		"not strict":    {func(c *gomysql.Config) { c.Params["sql_mode"] = "''" }, "STRICT_ALL_TABLES"},
		"half strict":   {func(c *gomysql.Config) { c.Params["sql_mode"] = "'STRICT_TRANS_TABLES'" }, "STRICT_ALL_TABLES"},
		"no autocommit": {func(c *gomysql.Config) { c.Params["autocommit"] = "0" }, "autocommit"},
		"chained":       {func(c *gomysql.Config) { c.Params["completion_type"] = "1" }, "completion_type"},
		"one statement": {func(c *gomysql.Config) { c.MultiStatements = false }, "multiStatements"},
		"prepared":      {func(c *gomysql.Config) { c.InterpolateParams = false }, "interpolateParams"},
		"latin1":        {func(c *gomysql.Config) { c.Params["character_set_client"] = "latin1" }, "utf8mb4"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
			cfg := mysqlConfig(t, mariadb, database)
			tt.harm(cfg)
			s := openMySQL(t, mysqlDB(t, cfg))
			if _, err := s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// A session that becomes unfit after the first look is noticed by the Advance
// itself, hands out nothing, and is not used again.
func TestMySQLSessionTurnsUnfit(t *testing.T) {
	for _, harm := range []string{"SET autocommit = 0", "SET sql_mode = ''", "SET completion_type = CHAIN", "SET completion_type = 2"} {
		_, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
		db := mysqlDB(t, mysqlConfig(t, mariadb, database))
		db.SetMaxOpenConns(1)
		s := openMySQL(t, db)
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Exec(harm); err != nil {
			t.Fatal(err)
		}
		if g, err := s.Advance(t.Context(), "order", 1); err == nil {
			t.Errorf("%s: got %v", harm, g)
		}
		if _, err := s.Advance(t.Context(), "order", 1); err != nil {
			t.Errorf("%s: a new session: %v", harm, err)
		}
	}
}

func TestMySQLOddRows(t *testing.T) {
	s, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('zero', 500, 0), ('minus', 500, -7), ('low', -5, 10)")
	for _, tag := range []string{"zero", "minus"} {
		if g, err := s.Advance(t.Context(), tag, 0); !errors.Is(err, segment.ErrDamaged) {
			t.Errorf("%s, n = 0: %v, %v", tag, g, err)
		}
		if g, err := s.Advance(t.Context(), tag, 5); err != nil || g.Range.Start != 500 || g.Step != 1 {
			t.Errorf("%s, n = 5: %+v, %v", tag, g, err)
		}
	}
	for _, n := range []int64{0, 1, 100} {
		if g, err := s.Advance(t.Context(), "low", n); err == nil || !strings.Contains(err.Error(), "negative max_id -5") {
			t.Errorf("negative max_id, n = %d: %v, %v", n, g, err)
		}
	}
	mariadb.Exec(t, database, "ALTER TABLE leaf_alloc DROP PRIMARY KEY", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('zero', 9, 1)")
	if g, err := s.Advance(t.Context(), "zero", 1); err == nil || !strings.Contains(err.Error(), "2 rows") {
		t.Errorf("two rows of one name: %v, %v", g, err)
	}
}

// A column that became too small while the store was open clamps in no session of
// ours.
func TestMySQLColumnShrinks(t *testing.T) {
	s, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 2147483600, 10)")
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Fatal(err)
	}
	mariadb.Exec(t, database, "ALTER TABLE leaf_alloc MODIFY max_id INT NOT NULL")
	var ranges drivertest.Ranges
	for range 20 {
		if g, err := s.Advance(t.Context(), "order", 10); err == nil {
			ranges.Add(g.Range)
		}
	}
	if err := ranges.Check(); err != nil {
		t.Error(err)
	}
	if n := ranges.Count(); n > 40 {
		t.Errorf("%d IDs from a column with room for 46", n)
	}
}

// Frequent mistakes and their error messages.
func TestMySQLAdvice(t *testing.T) {
	_, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	mariadb.Exec(t, "", "CREATE OR REPLACE USER reader@'127.0.0.1' IDENTIFIED BY 'hush'", "GRANT SELECT ON "+database+".* TO reader@'127.0.0.1'",
		"CREATE OR REPLACE USER nobody@'127.0.0.1' IDENTIFIED BY 'hush'")
	tests := map[string]struct {
		harm func(*gomysql.Config)
		want string
	}{
		"wrong password":   {func(c *gomysql.Config) { c.User, c.Passwd = "reader", "tell-nobody" }, "check the user name and the password"},
		"unknown user":     {func(c *gomysql.Config) { c.User, c.Passwd = "who", "tell-nobody" }, "check the user name and the password"},
		"unknown database": {func(c *gomysql.Config) { c.DBName = "nowhere" }, "no such database"},
		"no privilege":     {func(c *gomysql.Config) { c.User, c.Passwd = "nobody", "hush" }, "lacks a privilege"},
		"select only":      {func(c *gomysql.Config) { c.User, c.Passwd = "reader", "hush" }, "lacks a privilege"},
		"refused":          {func(c *gomysql.Config) { c.Addr = "127.0.0.1:1" }, "no server answers there"},
		"no tls":           {func(c *gomysql.Config) { c.TLSConfig = "skip-verify" }, "offers no encryption"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := mysqlConfig(t, mariadb, database)
			tt.harm(cfg)
			_, err := openMySQL(t, mysqlDB(t, cfg)).Advance(t.Context(), "order", 1)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if err != nil && (strings.Contains(err.Error(), "tell-nobody") || strings.Contains(err.Error(), "hush")) {
				t.Errorf("%v: holds the password", err)
			}
		})
	}
}

func TestMySQLReadOnlyServer(t *testing.T) {
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--server-id=77"}})
	database := server.NewDatabase(t)
	server.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
		"CREATE OR REPLACE USER app@'127.0.0.1'", "GRANT ALL ON "+database+".* TO app@'127.0.0.1'", "SET GLOBAL read_only = 1")
	cfg := mysqlConfig(t, server, database)
	cfg.User = "app"
	s := openMySQL(t, mysqlDB(t, cfg))
	wantReadOnly := func(when string) {
		t.Helper()
		if _, err := s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "the server is read-only") {
			t.Errorf("%s: %v", when, err)
		}
	}
	wantReadOnly("from the start")
	server.Exec(t, "", "SET GLOBAL read_only = 0")
	if g, err := s.Advance(t.Context(), "order", 1); err != nil || g.Server != "77" {
		t.Errorf("writable again: %+v, %v", g, err)
	}
	server.Exec(t, "", "SET GLOBAL read_only = 1")
	wantReadOnly("later")
}

// Without ON UPDATE a lost range looks the same when it is granted again.
func TestUpdateTimeThatStands(t *testing.T) {
	table := strings.Replace(javaTable, " ON UPDATE CURRENT_TIMESTAMP", "", 1)
	s, database := newMySQL(t, table, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	lost, err := s.Advance(t.Context(), "order", 100)
	if err != nil {
		t.Fatal(err)
	}
	mariadb.Exec(t, database, "UPDATE leaf_alloc SET max_id = 1") // like a restored backup
	if again, err := s.Advance(t.Context(), "order", 100); err != nil || again.Range != lost.Range {
		t.Fatalf("granted again: %v, %v, want %v", again, err, lost)
	}
	err = s.Return(t.Context(), "order", lost, 51)
	if err == nil {
		t.Fatal("the lost grant takes back what another server was granted")
	}
	_, cure, found := strings.Cut(err.Error(), ": ALTER TABLE ")
	if !found {
		t.Fatalf("no advice: %v", err)
	}
	mariadb.Exec(t, database, "ALTER TABLE "+cure)
	mended := openMySQL(t, mysqlDB(t, mysqlConfig(t, mariadb, database)))
	if g, err := mended.Advance(t.Context(), "order", 100); err != nil || g.Range.Start != 101 {
		t.Errorf("after the cure: %v, %v", g, err)
	} else if err := mended.Return(t.Context(), "order", g, 151); err != nil {
		t.Errorf("after the cure: %v", err)
	}
}
