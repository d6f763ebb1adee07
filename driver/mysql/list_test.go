package mysql_test

import (
	"errors"
	"testing"

	"github.com/leaf-id/leaf/segment"
)

func TestMySQLNotCreated(t *testing.T) {
	s, database := newMySQL(t)
	if _, err := s.Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("no table: %v, want segment.ErrNotCreated", err)
	}
	mariadb.Exec(t, "", "CREATE OR REPLACE USER stranger@'127.0.0.1'")
	cfg := mysqlConfig(t, mariadb, database)
	cfg.User = "stranger"
	if _, err := openMySQL(t, mysqlDB(t, cfg)).Advance(t.Context(), "order", 1); err == nil || errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("no privilege: %v, which is not segment.ErrNotCreated", err)
	}
	// The missing table of a trigger is not the store's.
	mariadb.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, step) VALUES ('order', 1)",
		"CREATE TRIGGER audit AFTER UPDATE ON leaf_alloc FOR EACH ROW INSERT INTO gone VALUES (1)")
	if _, err := s.Advance(t.Context(), "order", 1); err == nil || errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("a trigger's table: %v, which is not segment.ErrNotCreated", err)
	}
}
