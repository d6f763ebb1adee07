package mysql_test

import (
	"database/sql"
	"log/slog"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// emptyDB is a database without tables.
func emptyDB(t testing.TB) *sql.DB {
	t.Helper()
	return mysqlDB(t, mysqlConfig(t, mariadb, mariadb.NewDatabase(t)))
}

func TestStoreInit(t *testing.T) {
	suite.TestStoreInit(t, emptyDB(t), func(server string) bool { return server == "1" })
}

func TestEnsure(t *testing.T) { suite.TestEnsure(t, emptyDB(t)) }

func TestDeletedByHand(t *testing.T) { suite.TestDeletedByHand(t, emptyDB(t)) }

func TestRegistryInit(t *testing.T) { suite.TestRegistryInit(t, emptyDB(t)) }

func TestInitTogether(t *testing.T) {
	database := mariadb.NewDatabase(t)
	suite.TestInits(t, func(t testing.TB) func(testing.TB) *sql.DB {
		mariadb.Exec(t, database, "DROP TABLE IF EXISTS leaf_alloc, leaf_worker, WORKER_NODE")
		return func(t testing.TB) *sql.DB { return mysqlDB(t, mysqlConfig(t, mariadb, database)) }
	}, map[string]sqltest.Init{"nodes": initNodes})
}

func TestIdentity(t *testing.T) {
	cfg := mysqlConfig(t, mariadb, mariadb.NewDatabase(t))
	suite.TestIdentity(t, func(t testing.TB) *sql.DB { return mysqlDB(t, cfg) })
}

// A user who may not create the table is served without an identity, and told so.
func TestNoIdentity(t *testing.T) {
	_, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
		"CREATE OR REPLACE USER writer@'127.0.0.1'", "GRANT SELECT, INSERT, UPDATE ON leaf_alloc TO writer@'127.0.0.1'")
	cfg := mysqlConfig(t, mariadb, database)
	cfg.User, cfg.Passwd = "writer", ""
	for range 2 {
		var log strings.Builder
		s, err := storeOn(mysqlDB(t, cfg), &sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		g, err := s.Advance(t.Context(), "order", 1)
		if err != nil || g.Store != "" || !strings.Contains(log.String(), "no identity") {
			t.Errorf("the grant is %+v, %v; the log:\n%s", g, err, &log)
		}
		// Another user creates it.
		if g, err := openMySQL(t, mysqlDB(t, mysqlConfig(t, mariadb, database))).Advance(t.Context(), "order", 1); err != nil || g.Store == "" {
			t.Errorf("as the owner: %+v, %v", g, err)
		}
	}
}

// Users without rights on a table of options see an error as soon as it has rows; a store without
// options works as before.
func TestUnreadableOptions(t *testing.T) {
	s, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
		"CREATE OR REPLACE USER writer@'127.0.0.1'", "GRANT SELECT, INSERT, UPDATE, DELETE ON leaf_alloc TO writer@'127.0.0.1'")
	cfg := mysqlConfig(t, mariadb, database)
	cfg.User, cfg.Passwd = "writer", ""
	writer := openMySQL(t, mysqlDB(t, cfg))
	list := func() error {
		for _, err := range writer.Tags(t.Context()) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	change := segment.Change{Options: segment.TagOptions{"later": "x"}}
	step := segment.Change{Step: new(int64(20))}
	if err := list(); err != nil {
		t.Errorf("no such table: %v", err)
	}
	if _, err := writer.Alter(t.Context(), "order", step); err != nil {
		t.Errorf("no such table: %v", err)
	}
	if _, err := writer.Alter(t.Context(), "order", change); err == nil || !strings.Contains(err.Error(), "GRANT") {
		t.Errorf("set an option: %v", err)
	}
	if _, err := s.Advance(t.Context(), "order", 1); err != nil { // creates leaf_store
		t.Fatal(err)
	}
	mariadb.Exec(t, database, "GRANT SELECT ON leaf_store TO writer@'127.0.0.1'")
	if err := list(); err != nil {
		t.Errorf("no such table, and rights on leaf_store: %v", err)
	}
	if _, err := s.Alter(t.Context(), "order", change); err != nil {
		t.Fatal(err)
	}
	if err := list(); err == nil || !strings.Contains(err.Error(), "GRANT") || !strings.Contains(err.Error(), "leaf_option") {
		t.Errorf("hidden options: %v", err)
	}
	if _, err := writer.Alter(t.Context(), "order", step); err == nil || !strings.Contains(err.Error(), "leaf_option") {
		t.Errorf("alter beside hidden options: %v", err)
	}
	if _, err := writer.Advance(t.Context(), "order", 1); err != nil {
		t.Error(err)
	}
	mariadb.Exec(t, database, "GRANT SELECT, DELETE ON leaf_option TO writer@'127.0.0.1'")
	if err := list(); err != nil {
		t.Errorf("with the right: %v", err)
	}
	if err := s.Delete(t.Context(), "order"); err != nil {
		t.Fatal(err)
	}
	if err := writer.Create(t.Context(), segment.Tag{Name: "order", Step: 1}); err == nil || !strings.Contains(err.Error(), "leaf_deleted") {
		t.Errorf("create beside hidden ends of deleted tags: %v", err)
	}
}

func TestListingHoldsNothing(t *testing.T) { suite.TestListingHoldsNothing(t, emptyDB(t)) }

// A row that cannot be a tag is left out, and logged once.
func TestOddRows(t *testing.T) {
	table := strings.NewReplacer("NOT NULL DEFAULT '1'", "NULL", "int(11) NOT NULL", "int(11) NULL", "timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP", "timestamp NULL").Replace(javaTable)
	_, database := newMySQL(t, table, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('', 1, 1), ('new\nline', 1, 1), "+sqltest.OddRows)
	var log strings.Builder
	s, err := storeOn(mysqlDB(t, mysqlConfig(t, mariadb, database)), &sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	sqltest.TestOddRows(t, s)
	sqltest.Names(t, s)
	if n := strings.Count(log.String(), "left out"); n != 2 {
		t.Errorf("%d lines about rows left out, want 2:\n%s", n, &log)
	}
}

func TestOtherText(t *testing.T) {
	database := newMySQLRegistry(t)
	corrupt(t, mysqlDB(t, mysqlConfig(t, mariadb, database)), 7, sqltest.OtherText)
	sqltest.TestOtherText(t, openMySQLRegistry(t, database))
}

func TestKilledServer(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	cfg := mysqlConfig(t, server, server.NewDatabase(t))
	db := mysqlDB(t, cfg)
	if err := initStore(t.Context(), db, sqltest.KilledTags()); err != nil {
		t.Fatal(err)
	}
	if err := initRegistry(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	t.Run("store", func(t *testing.T) { sqltest.TestKilledStore(t, server, openMySQL(t, db)) })
	t.Run("registry", func(t *testing.T) {
		sqltest.TestKilledRegistry(t, server, func() worker.Registry { return mysqlRegistryOf(t, cfg) })
	})
}
