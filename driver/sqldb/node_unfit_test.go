package sqldb_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
)

func assignError(t *testing.T, n *sqldb.Nodes) error {
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
		"small letters":  {strings.ToLower(strings.Replace(baiduTable, "WORKER_NODE", "worker_node", 1)), "leaf init --workers"},
		"another table":  {javaTable, "leaf init --workers"},
		"further column": {replace("PRIMARY", "CLUSTER INT NOT NULL, PRIMARY"), "without a default value"},
		"short host":     {replace("HOST_NAME VARCHAR(64)", "HOST_NAME VARCHAR(4)"), "cannot hold it"},
		"at its end":     {replace("ID BIGINT", "ID TINYINT"), "at the end of the range"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			database := mariadb.NewDatabase(t)
			mariadb.Exec(t, database, "SET sql_mode = ''", tt.table)
			b := nodeBed{db: mysqlDB(t, mysqlConfig(t, mariadb, database)), open: sqldb.OpenMySQLNodes}
			if name == "at its end" {
				b.exec(t, strings.ReplaceAll(row, "%d", "127"))
			}
			n := b.start(t, nil)
			wantError(t, tt.want, assignError(t, n), assignError(t, n))
			// Once the table is well, so are the worker IDs.
			b.exec(t, "DROP TABLE IF EXISTS WORKER_NODE")
			mariadb.Exec(t, database, "DROP VIEW IF EXISTS WORKER_NODE", "SET sql_mode = ''", baiduTable)
			wantAssigned(t, n, 1)
		})
	}
}

func TestMySQLNodesRefuseUnfitSessions(t *testing.T) {
	for harm, want := range map[string]string{"SET autocommit = 0": "autocommit", "SET sql_mode = ''": "STRICT_ALL_TABLES"} {
		b := mysqlNodeBed(t)
		b.mustInit(t)
		b.db.SetMaxOpenConns(1)
		n := b.start(t, nil)
		if _, err := n.Clock(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.exec(t, harm)
		wantError(t, want, assignError(t, n))
		b.wantIDs(t)
		wantAssigned(t, n, 1) // in a new session
	}
}

func TestPostgresNodesRefuseUnfitTables(t *testing.T) {
	const table = `CREATE TABLE WORKER_NODE (ID bigserial PRIMARY KEY, HOST_NAME varchar(64) NOT NULL, PORT varchar(64) NOT NULL,
		TYPE int NOT NULL, LAUNCH_DATE date NOT NULL, MODIFIED timestamp NOT NULL, CREATED timestamp NOT NULL)`
	replace := func(old, new string) string { return strings.Replace(table, old, new, 1) }
	tests := map[string]struct{ table, want string }{
		"no counter":    {replace("bigserial", "bigint"), "without a default value"},
		"no key":        {replace("PRIMARY KEY", ""), "ADD PRIMARY KEY (id)"},
		"a wider key":   {replace("PRIMARY KEY,", ", PRIMARY KEY (ID, PORT),"), "ADD PRIMARY KEY (id)"},
		"a partial key": {strings.Replace(table, "PRIMARY KEY", "", 1) + "; CREATE UNIQUE INDEX ON WORKER_NODE (ID) WHERE ID > 100", "ADD PRIMARY KEY (id)"},
		"unlogged":      {replace("CREATE TABLE", "CREATE UNLOGGED TABLE"), "SET LOGGED"},
		"no column":     {replace("TYPE ", "KIND "), "lacks a column"},
		"date as text":  {replace("date", "text"), "of type text"},
		"short host":    {replace("HOST_NAME varchar(64)", "HOST_NAME varchar(4)"), "cannot hold it"},
		"none":          {"SELECT 1", "leaf init --workers"},
		"at its end":    {table + "; ALTER SEQUENCE worker_node_id_seq MAXVALUE 2; SELECT setval('worker_node_id_seq', 2)", "at the end of the range"},
	}
	database := postgres.NewDatabase(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			postgres.Exec(t, database, "DROP TABLE IF EXISTS WORKER_NODE", tt.table)
			b := nodeBed{db: postgresDB(t, postgres.URL(database)), open: sqldb.OpenPostgresNodes}
			n := b.start(t, nil)
			wantError(t, tt.want, assignError(t, n), assignError(t, n))
			b.exec(t, "DROP TABLE IF EXISTS WORKER_NODE", table)
			wantAssigned(t, n, 1)
		})
	}
}

// A commit that a crash may take back frees the ID for another process.
func TestPostgresNodesRefuseAsynchronousCommits(t *testing.T) {
	database := postgres.NewDatabase(t)
	if err := sqldb.InitPostgresNodes(t.Context(), postgresDB(t, postgres.URL(database))); err != nil {
		t.Fatal(err)
	}
	db := postgresDB(t, postgres.URL(database))
	db.SetMaxOpenConns(1)
	b := nodeBed{db: db, open: sqldb.OpenPostgresNodes}
	n := b.start(t, nil)
	if _, err := n.Clock(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.exec(t, "SET synchronous_commit = off")
	wantError(t, "synchronous_commit", assignError(t, n))
	wantAssigned(t, n, 2) // in a new session; the row before is nobody's
}

func TestNodesWithoutPrivileges(t *testing.T) {
	t.Run("mysql", func(t *testing.T) {
		database := mariadb.NewDatabase(t)
		mariadb.Exec(t, database, "SET sql_mode = ''", baiduTable, "CREATE USER looker@'127.0.0.1'", "GRANT SELECT ON "+database+".* TO looker@'127.0.0.1'",
			"CREATE USER nodes@'127.0.0.1'", "GRANT SELECT, INSERT ON "+database+".WORKER_NODE TO nodes@'127.0.0.1'")
		for user, want := range map[string]string{"looker": "lacks a privilege", "nodes": ""} {
			cfg := mysqlConfig(t, mariadb, database)
			cfg.User = user
			b := nodeBed{db: mysqlDB(t, cfg), open: sqldb.OpenMySQLNodes}
			if err := assignError(t, b.start(t, nil)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", user, err, want)
			}
		}
	})
	t.Run("postgres", func(t *testing.T) {
		b := postgresNodeBed(t)
		b.mustInit(t)
		b.exec(t, "DROP ROLE IF EXISTS nodelooker", "CREATE ROLE nodelooker", "GRANT SELECT ON worker_node TO nodelooker")
		b.db.SetMaxOpenConns(1)
		b.exec(t, "SET ROLE nodelooker")
		n := b.start(t, nil)
		wantError(t, "lacks a privilege", assignError(t, n))
		b.exec(t, "RESET ROLE", "GRANT INSERT ON worker_node TO nodelooker", "SET ROLE nodelooker")
		wantAssigned(t, n, 1) // an identity needs no rights to its sequence, and a refused row uses no ID up
	})
}

// Once there is a worker ID, all goes on without the database.
func TestNodesOutliveTheDatabase(t *testing.T) {
	for name, b := range map[string]nodeBed{"mysql": mysqlNodeBed(t), "postgres": postgresNodeBed(t)} {
		t.Run(name, func(t *testing.T) {
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
		})
	}
}

func TestNodesWarnOfForgetfulDatabases(t *testing.T) {
	nodeBeds(t, func(t *testing.T, b nodeBed) {
		b.mustInit(t)
		log := new(bytes.Buffer)
		n := b.start(t, func(o *sqldb.NodesOptions) { o.Logger = slog.New(slog.NewTextHandler(log, nil)) })
		wantAssigned(t, n, 1)
		// Of the servers here only PostgreSQL's may have a standby.
		if got, want := strings.Contains(log.String(), "deal their worker IDs again"), strings.HasSuffix(t.Name(), "postgres"); got != want {
			t.Errorf("warned: %v, want %v:\n%s", got, want, log)
		}
	})
}

func TestNodesWantTheirNode(t *testing.T) {
	b := mysqlNodeBed(t)
	b.mustInit(t)
	n, err := b.open(b.db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := assignError(t, n); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("Assign without host and port: %v", err)
	}
	b.wantIDs(t)
}
