package mysql_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
)

// An Advance within a transaction that somebody left open is not an Advance: it would be
// undone with it.
func TestMySQLOpenTransaction(t *testing.T) {
	_, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	db := mysqlDB(t, mysqlConfig(t, mariadb, database))
	db.SetMaxOpenConns(1)
	s := openMySQL(t, db)
	if _, err := s.Advance(t.Context(), "order", 10); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("BEGIN"); err != nil {
		t.Fatal(err)
	}
	if g, err := s.Advance(t.Context(), "order", 10); err == nil || !strings.Contains(err.Error(), "a pool of its own") {
		t.Errorf("within a transaction: %v, %v", g, err)
	}
	if g, err := s.Advance(t.Context(), "order", 10); err != nil || g.Range.Start != 11 {
		t.Errorf("on a new session: %v, %v, want the range that was not committed", g, err)
	}
}

// Galera's switch alone, without its library, makes no cluster; and a server that
// does not sync each commit is warned about, once.
func TestMySQLServerThatForgets(t *testing.T) {
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--server-id=5", "--innodb-flush-log-at-trx-commit=2",
		"--wsrep-on=ON", "--wsrep-provider=none", "--binlog-format=ROW"}})
	database := server.NewDatabase(t)
	server.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	db := mysqlDB(t, mysqlConfig(t, server, database))
	var name, value string
	if err := db.QueryRow("SHOW VARIABLES LIKE 'wsrep_on'").Scan(&name, &value); err != nil || value != "ON" {
		t.Fatalf("wsrep_on is %q, %v: nothing is tested", value, err)
	}
	var log strings.Builder
	s, err := storeOn(db, &sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if g, err := s.Advance(t.Context(), "order", 10); err != nil || g.Server != "5" {
			t.Errorf("%+v, %v, want server 5", g, err)
		}
	}
	if n := strings.Count(log.String(), "innodb_flush_log_at_trx_commit=2"); n != 1 {
		t.Errorf("%d warnings, want 1:\n%s", n, &log)
	}
}
