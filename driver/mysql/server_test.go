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

// A server with a binary log undoes in its recovery the commits that this log lacks. Without one
// nothing depends on sync_binlog, whose default in MariaDB is 0.
func TestMySQLServerThatForgetsItsBinaryLog(t *testing.T) {
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--log-bin=binlog", "--server-id=6"}})
	for flush, want := range map[string]int{"1": 1, "3": 0} { // at 3 the commit is synced, too
		server.Exec(t, "", "SET GLOBAL innodb_flush_log_at_trx_commit = "+flush)
		if log := firstUse(t, server); strings.Count(log, "sync_binlog=0") != want || strings.Contains(log, "set innodb_flush") {
			t.Errorf("innodb_flush_log_at_trx_commit=%s: %d warnings of sync_binlog, want %d:\n%s", flush, strings.Count(log, "sync_binlog=0"), want, log)
		}
	}
	server.Exec(t, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "SET GLOBAL sync_binlog = 1")
	for _, host := range []*testserver.MariaDBServer{server, mariadb} {
		if log := firstUse(t, host); strings.Contains(log, "power cut") {
			t.Errorf("warned of a server that forgets nothing:\n%s", log)
		}
	}
}

// firstUse returns what a store logs about a server.
func firstUse(t *testing.T, server *testserver.MariaDBServer) string {
	t.Helper()
	database := server.NewDatabase(t)
	server.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	var log strings.Builder
	s, err := storeOn(mysqlDB(t, mysqlConfig(t, server, database)), &sqldb.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err == nil {
		_, err = s.Advance(t.Context(), "order", 10)
	}
	if err != nil {
		t.Fatal(err)
	}
	return log.String()
}

// Both a restart and a statement may make a server lossy.
func TestMySQLStrictOnceLossy(t *testing.T) {
	args := []string{"--server-id=7", "--skip-log-bin"}
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: args})
	for _, tt := range []struct {
		name   string
		become func()
	}{
		{"statement", func() { server.Exec(t, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 2") }},
		{"restart", func() {
			if err := server.Stop(); err != nil {
				t.Fatal(err)
			}
			args[1] = "--log-bin=binlog" // of the next start
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server.Exec(t, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
			suite.TestStrictOnceLossy(t, mysqlDB(t, mysqlConfig(t, server, server.NewDatabase(t))), tt.become)
		})
	}
}
