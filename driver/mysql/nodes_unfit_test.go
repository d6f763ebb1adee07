package mysql_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/mysql"
)

func assignError(t *testing.T, n *mysql.Nodes) error {
	_, err := n.Assign(t.Context(), 1000)
	return err
}

func TestMySQLNodesRefuseUnfitTables(t *testing.T) {
	replace := func(old, new string) string { return strings.Replace(baiduTable, old, new, 1) }
	tests := map[string]struct{ table, want string }{
		"no counter":     {replace("AUTO_INCREMENT", ""), "MODIFY ID BIGINT NOT NULL AUTO_INCREMENT"},
		"no key":         {replace("PRIMARY KEY(ID)", "KEY(ID)"), "ADD PRIMARY KEY (ID)"},
		"a wider key":    {replace("PRIMARY KEY(ID)", "PRIMARY KEY(ID, PORT)"), "ADD PRIMARY KEY (ID)"},
		"myisam":         {replace("INNODB", "MyISAM"), "ENGINE=InnoDB"},
		"no column":      {replace("TYPE ", "KIND "), "lacks a column"},
		"a view":         {"CREATE VIEW WORKER_NODE AS SELECT 1 ID, 'h' HOST_NAME, 'p' PORT, 1 TYPE, NOW() LAUNCH_DATE, NOW() MODIFIED, NOW() CREATED", "view"},
		"small letters":  {strings.ToLower(strings.Replace(baiduTable, "WORKER_NODE", "worker_node", 1)), "no table WORKER_NODE"},
		"another table":  {javaTable, "no table WORKER_NODE"},
		"further column": {replace("PRIMARY", "CLUSTER INT NOT NULL, PRIMARY"), "without a default value"},
		"short host":     {replace("HOST_NAME VARCHAR(64)", "HOST_NAME VARCHAR(4)"), "cannot hold it"},
		"at its end":     {replace("ID BIGINT", "ID TINYINT"), "at the end of the range"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			database := mariadb.NewDatabase(t)
			mariadb.Exec(t, database, "SET sql_mode = ''", tt.table)
			b := nodeBed{db: mysqlDB(t, mysqlConfig(t, mariadb, database))}
			if name == "at its end" {
				b.exec(t, strings.ReplaceAll(row, "%d", "127"))
			}
			n := b.start(t, nil)
			sqltest.WantError(t, tt.want, assignError(t, n), assignError(t, n))
			// Once the table is well, so are the worker IDs.
			b.exec(t, "DROP TABLE IF EXISTS WORKER_NODE")
			mariadb.Exec(t, database, "DROP VIEW IF EXISTS WORKER_NODE", "SET sql_mode = ''", baiduTable)
			wantAssigned(t, n, 1)
		})
	}
}

func TestMySQLNodesRefuseUnfitSessions(t *testing.T) {
	for harm, want := range map[string]string{"SET autocommit = 0": "autocommit", "SET sql_mode = ''": "STRICT_ALL_TABLES", "SET completion_type = CHAIN": "completion_type"} {
		b := newNodeBed(t)
		b.mustInit(t)
		b.db.SetMaxOpenConns(1)
		n := b.start(t, nil)
		if _, err := n.Clock(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.exec(t, harm)
		sqltest.WantError(t, want, assignError(t, n))
		b.wantIDs(t)
		wantAssigned(t, n, 1) // in a new session
	}
}

func TestNodesWithoutPrivileges(t *testing.T) {
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, "SET sql_mode = ''", baiduTable, "CREATE OR REPLACE USER looker@'127.0.0.1'", "GRANT SELECT ON "+database+".* TO looker@'127.0.0.1'",
		"CREATE OR REPLACE USER nodes@'127.0.0.1'", "GRANT SELECT, INSERT ON "+database+".WORKER_NODE TO nodes@'127.0.0.1'")
	for user, want := range map[string]string{"looker": "lacks a privilege", "nodes": ""} {
		cfg := mysqlConfig(t, mariadb, database)
		cfg.User = user
		b := nodeBed{db: mysqlDB(t, cfg)}
		if err := assignError(t, b.start(t, nil)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", user, err, want)
		}
	}
}

// With a worker ID, everything works without the database.
func TestNodesOutliveTheDatabase(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	n, late := b.start(t, nil), b.start(t, nil)
	wantAssigned(t, n, 1)
	if now, err := n.Clock(t.Context()); err != nil || time.Since(now).Abs() > time.Second {
		t.Errorf("the server's clock: %v, %v", now, err)
	}
	if err := b.db.Close(); err != nil {
		t.Fatal(err)
	}
	wantAssigned(t, n, 1)
	if now, err := n.Clock(t.Context()); err != nil || !now.IsZero() {
		t.Errorf("clock: %v, %v, want this machine's", now, err)
	}
	if _, err := n.Starts(t.Context(), 1); err == nil {
		t.Error("the rows were listed")
	}
	if err := assignError(t, late); err == nil {
		t.Error("a late start got a worker ID")
	}
	if _, err := late.Clock(t.Context()); err == nil {
		t.Error("a late start got a time")
	}
}

func TestNodesWarnOfForgetfulDatabases(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	log := new(bytes.Buffer)
	n := b.start(t, func(o *mysql.NodesOptions) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
	wantAssigned(t, n, 1)
	// The server here keeps no binary log and flushes each commit.
	if strings.Contains(log.String(), "deal their worker IDs again") {
		t.Errorf("warned:\n%s", log)
	}
}

func TestNodesWantTheirNode(t *testing.T) {
	b := newNodeBed(t)
	b.mustInit(t)
	n, err := mysql.NewNodes(b.db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := assignError(t, n); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("Assign without host and port: %v", err)
	}
	b.wantIDs(t)
}
