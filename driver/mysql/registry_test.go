package mysql_test

import (
	"database/sql"
	"errors"
	"strings"
	"testing"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

func newMySQLRegistry(t testing.TB) string {
	t.Helper()
	database := mariadb.NewDatabase(t)
	if err := initRegistry(t.Context(), mysqlDB(t, mysqlConfig(t, mariadb, database))); err != nil {
		t.Fatal(err)
	}
	return database
}

func openMySQLRegistry(t testing.TB, database string) *sqldb.Registry {
	t.Helper()
	return mysqlRegistryOf(t, mysqlConfig(t, mariadb, database))
}

func mysqlRegistryOf(t testing.TB, cfg *gomysql.Config) *sqldb.Registry {
	t.Helper()
	return suite.OpenRegistry(t, mysqlDB(t, cfg), nil)
}

func TestMySQLRegistry(t *testing.T) {
	for name, edit := range map[string]func(*gomysql.Config){
		"plain": func(*gomysql.Config) {},
		"odd": func(c *gomysql.Config) {
			c.ClientFoundRows, c.ParseTime = true, true
			c.Params["time_zone"] = "'+08:00'"
			c.Params["tx_isolation"] = "'SERIALIZABLE'"
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name != "plain" { // the same statements
				testserver.Long(t)
			}
			drivertest.TestRegistry(t, func(t testing.TB) drivertest.RegistryBackend {
				database := newMySQLRegistry(t)
				return drivertest.RegistryBackend{
					Open: func(t testing.TB) worker.Registry {
						cfg := mysqlConfig(t, mariadb, database)
						edit(cfg)
						return mysqlRegistryOf(t, cfg)
					},
					Corrupt: func(t testing.TB, id int64, text string) {
						corrupt(t, mysqlDB(t, mysqlConfig(t, mariadb, database)), id, text)
					},
				}
			})
		})
	}
}

const workerTable = `CREATE TABLE leaf_worker (worker BIGINT NOT NULL PRIMARY KEY, record TEXT CHARACTER SET utf8mb4 NOT NULL,
	update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP) ENGINE=InnoDB`

func TestMySQLRegistryRefusesUnfitTables(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(workerTable, old, new, 1) }
	tests := map[string]struct{ table, want string }{
		"short record":  {replace("TEXT", "VARCHAR(255)"), "MODIFY record TEXT"},
		"no key":        {replace("PRIMARY KEY", ""), "ADD PRIMARY KEY"},
		"wider key":     {replace("PRIMARY KEY,", ", other INT, PRIMARY KEY (worker, other),"), "ADD PRIMARY KEY"},
		"small worker":  {replace("worker BIGINT", "worker SMALLINT"), "MODIFY worker BIGINT"},
		"myisam":        {replace("InnoDB", "MyISAM"), "ENGINE=InnoDB"},
		"no column":     {replace("record ", "holder "), "lacks a column"},
		"view":          {"CREATE VIEW leaf_worker AS SELECT 1 worker, 'x' record, NOW() update_time", "view"},
		"another table": {javaTable, "no table leaf_worker"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			database := mariadb.NewDatabase(t)
			mariadb.Exec(t, database, tt.table)
			r := openMySQLRegistry(t, database)
			sqltest.WantError(t, tt.want, sqltest.SwapError(t, r), sqltest.LoadError(t, r))
			// Once the table is well, so is the registry.
			mariadb.Exec(t, database, "DROP TABLE IF EXISTS leaf_worker", "DROP VIEW IF EXISTS leaf_worker", workerTable)
			if err := sqltest.SwapError(t, r); err != nil {
				t.Errorf("after the cure: %v", err)
			}
		})
	}
}

func TestMySQLRegistryRefusesUnfitSessions(t *testing.T) {
	tests := map[string]struct {
		harm func(*gomysql.Config)
		want string
	}{
		"not strict":    {func(c *gomysql.Config) { c.Params["sql_mode"] = "''" }, "STRICT_ALL_TABLES"},
		"no autocommit": {func(c *gomysql.Config) { c.Params["autocommit"] = "0" }, "autocommit"},
		"chained":       {func(c *gomysql.Config) { c.Params["completion_type"] = "1" }, "completion_type"},
		"latin1":        {func(c *gomysql.Config) { c.Params["character_set_client"] = "latin1" }, "utf8mb4"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			cfg := mysqlConfig(t, mariadb, newMySQLRegistry(t))
			tt.harm(cfg)
			r := mysqlRegistryOf(t, cfg)
			sqltest.WantError(t, tt.want, sqltest.SwapError(t, r), sqltest.LoadError(t, r))
		})
	}
}

// A session that becomes unfit after the first look is noticed by the call itself,
// which writes nothing, and is not used again.
func TestMySQLRegistrySessionTurnsUnfit(t *testing.T) {
	for _, harm := range []string{"SET autocommit = 0", "SET sql_mode = ''", "SET completion_type = CHAIN", "START TRANSACTION"} {
		for name, call := range map[string]func(*testing.T, worker.Registry) error{"swap": sqltest.SwapError, "load": sqltest.LoadError} {
			db := mysqlDB(t, mysqlConfig(t, mariadb, newMySQLRegistry(t)))
			db.SetMaxOpenConns(1)
			r, err := registryOn(db, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := sqltest.LoadError(t, r); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec(harm); err != nil {
				t.Fatal(err)
			}
			sqltest.WantError(t, "unfit session", call(t, r))
			if err := sqltest.SwapError(t, r); err != nil {
				t.Errorf("%s, %s: a new session: %v", harm, name, err)
			}
		}
	}
}

func TestMySQLRegistryServers(t *testing.T) {
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--log-bin=binlog", "--server-id=78"}})
	database := server.NewDatabase(t)
	cfg := mysqlConfig(t, server, database)
	if err := initRegistry(t.Context(), mysqlDB(t, cfg)); err != nil {
		t.Fatal(err)
	}
	sqltest.WantForgetful(t, mysqlRegistryOf(t, cfg), true)

	server.Exec(t, database, "CREATE USER app@'127.0.0.1'", "GRANT ALL ON "+database+".* TO app@'127.0.0.1'")
	cfg = mysqlConfig(t, server, database)
	cfg.User = "app"
	r := mysqlRegistryOf(t, cfg)
	if err := sqltest.SwapError(t, r); err != nil {
		t.Fatal(err)
	}
	server.Exec(t, "", "SET GLOBAL read_only = 1")
	sqltest.WantError(t, "the server is read-only", sqltest.SwapError(t, r), sqltest.LoadError(t, r), sqltest.SwapError(t, mysqlRegistryOf(t, cfg)))
	server.Exec(t, "", "SET GLOBAL read_only = 0")
	if err := sqltest.LoadError(t, r); err != nil {
		t.Errorf("writable again: %v", err)
	}
}

// A server without a binary log has no replicas that could take over, and loses
// nothing if it flushes.
func TestMySQLRegistryForgetful(t *testing.T) {
	r := openMySQLRegistry(t, newMySQLRegistry(t))
	sqltest.WantForgetful(t, r, false)
	mariadb.Exec(t, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 2")
	sqltest.WantForgetful(t, r, true)
	mariadb.Exec(t, "", "SET GLOBAL innodb_flush_log_at_trx_commit = 1")
	sqltest.WantForgetful(t, r, false)
}

// The clock is the server's, to the millisecond, in every time zone of the session.
func TestMySQLRegistryClock(t *testing.T) {
	for _, zone := range []string{"'+00:00'", "'-11:30'", "'+13:00'"} {
		cfg := mysqlConfig(t, mariadb, newMySQLRegistry(t))
		cfg.Params["time_zone"] = zone
		r := mysqlRegistryOf(t, cfg)
		sqltest.TestClock(t, r)
	}
}

// The one statement that only a Galera node is sent is one that the server knows.
func TestMySQLRegistryGaleraStatement(t *testing.T) {
	mariadb.Exec(t, "", "SET SESSION wsrep_sync_wait = 1")
}

// corrupt has a cell hold text, by way of a plain connection.
func corrupt(t testing.TB, db *sql.DB, id int64, text string) {
	t.Helper()
	for _, query := range []string{"DELETE FROM leaf_worker WHERE worker = ? AND record <> ?", "INSERT INTO leaf_worker (worker, record, update_time) VALUES (?, ?, 20260101000000)"} {
		if _, err := db.Exec(query, id, text); err != nil {
			t.Fatal(err)
		}
	}
}

// A restart is another epoch, and so is the time after the server was made a replica.
func TestMySQLIncarnation(t *testing.T) {
	server := testserver.MariaDB(t, &testserver.MariaDBOptions{Args: []string{"--log-bin=binlog", "--server-id=79"}})
	cfg := mysqlConfig(t, server, server.NewDatabase(t))
	if err := initRegistry(t.Context(), mysqlDB(t, cfg)); err != nil {
		t.Fatal(err)
	}
	r := mysqlRegistryOf(t, cfg)
	drivertest.TestIncarnation(t, r, func() {
		if err := errors.Join(server.Kill(), server.Start()); err != nil {
			t.Fatal(err)
		}
	})
	drivertest.TestIncarnation(t, r, func() {
		server.Exec(t, "", "CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT=1", "RESET SLAVE ALL")
	})
}
