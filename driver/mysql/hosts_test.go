package mysql_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest/sqltest"
	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// hostsDB returns a pool of connections to whichever of the servers can be written.
func hostsDB(t testing.TB, servers ...*gomysql.Config) *sql.DB {
	t.Helper()
	connector, err := mysql.NewConnector(servers, nil)
	if err != nil {
		t.Fatal(err)
	}
	return sqltest.Pool(t, connector)
}

// newPair starts a pair whose database has Java's table with one tag, and the
// configurations of the primary and of the replica for a user that read_only binds.
func newPair(t testing.TB) (pair *testserver.MariaDBPairServer, primary, replica *gomysql.Config) {
	t.Helper()
	pair = testserver.MariaDBPair(t, nil)
	database := pair.Primary.NewDatabase(t)
	pair.Primary.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
		"CREATE OR REPLACE USER app@'127.0.0.1'", "GRANT ALL ON "+database+".* TO app@'127.0.0.1'")
	pair.CatchUp(t)
	primary, replica = mysqlConfig(t, pair.Primary, database), mysqlConfig(t, pair.Replica, database)
	for _, cfg := range []*gomysql.Config{primary, replica} {
		cfg.User, cfg.Timeout, cfg.ReadTimeout = "app", time.Second, 2*time.Second
	}
	return pair, primary, replica
}

// advanceOn takes one ID and compares the server that gave it.
func advanceOn(t testing.TB, s *sqldb.Store, server string) segment.Grant {
	t.Helper()
	g, err := s.Advance(t.Context(), "order", 1)
	if err != nil || g.Server != server {
		t.Errorf("%+v, %v, want server %s", g, err, server)
	}
	return g
}

// fillPool has n calls at once, so that as many connections are in the pool.
func fillPool(t testing.TB, db *sql.DB, n int) {
	t.Helper()
	var conns []*sql.Conn
	for range n {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		conn.Close()
	}
	if idle := db.Stats().Idle; idle != n {
		t.Fatalf("%d connections in the pool, want %d", idle, n)
	}
}

// awaitAdvance returns how many calls failed before one was served.
func awaitAdvance(t testing.TB, s *sqldb.Store, limit time.Duration) (g segment.Grant, failed int) {
	t.Helper()
	for deadline := time.Now().Add(limit); ; failed++ {
		g, err := s.Advance(t.Context(), "order", 1)
		if err == nil {
			return g, failed
		}
		if time.Now().After(deadline) {
			t.Fatalf("not served after %v: %v", limit, err)
		}
	}
}

// The primary dies and the replica, the first in the URL, takes over; then the former primary
// returns.
func TestMySQLHostsFailOver(t *testing.T) {
	pair, primary, replica := newPair(t)
	db := hostsDB(t, replica, primary)
	s := openMySQL(t, db)
	advanceOn(t, s, "1")
	fillPool(t, db, 8)
	if err := pair.Primary.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Advance(t.Context(), "order", 1)
	for _, want := range []string{replica.Addr + ": the server is read-only", primary.Addr + ": no server answers there"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with no primary: %v, want %q", err, want)
		}
	}
	pair.Promote(t)
	pair.Replica.Exec(t, replica.DBName, "ALTER TABLE leaf_alloc MODIFY max_id INT NOT NULL")
	if _, err := s.Advance(t.Context(), "order", 1); err == nil || !strings.Contains(err.Error(), "MODIFY max_id BIGINT") {
		t.Errorf("the new server's table was not looked at: %v", err)
	}
	pair.Replica.Exec(t, replica.DBName, "ALTER TABLE leaf_alloc MODIFY max_id BIGINT NOT NULL")
	if g, _ := awaitAdvance(t, s, 15*time.Second); g.Server != "2" {
		t.Errorf("after the promotion: %+v, want server 2", g)
	}
	if err := pair.ReturnReadOnly(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		advanceOn(t, s, "2")
	}
	advanceOn(t, openMySQL(t, hostsDB(t, primary, replica)), "2")
}

// The servers change places in good order: one call fails, and no later call uses the pool's old
// connections.
func TestMySQLHostsSwitchOver(t *testing.T) {
	pair, primary, replica := newPair(t)
	db := hostsDB(t, primary, replica)
	s := openMySQL(t, db)
	advanceOn(t, s, "1")
	fillPool(t, db, 8)
	pair.Primary.Exec(t, "", "SET GLOBAL read_only = 1")
	pair.CatchUp(t)
	pair.Promote(t)
	if g, failed := awaitAdvance(t, s, 15*time.Second); failed != 1 || g.Server != "2" || g.Range.Start != 2 {
		t.Errorf("%+v after %d failed calls, want ID 2 of server 2 after one", g, failed)
	}
	fillPool(t, db, 8)
	for range 8 {
		advanceOn(t, s, "2")
	}

	// Both can be written, and neither knows of the other.
	pair.Primary.Exec(t, "", "SET GLOBAL read_only = 0")
	advanceOn(t, s, "2")
	_, err := openMySQL(t, hostsDB(t, primary, replica)).Advance(t.Context(), "order", 1)
	if err == nil || !strings.Contains(err.Error(), "can both be written and are not a cluster") {
		t.Errorf("two servers that can be written: %v", err)
	}
}

// So they do for a user whom read_only does not bind: a range that it takes on the
// former primary is not handed out, and nothing else stays there.
func TestMySQLHostsSwitchOverUnbound(t *testing.T) {
	pair, primary, replica := newPair(t)
	primary.User, replica.User = "root", "root"
	var last segment.Grant
	calls := []func(*sqldb.Store) error{
		func(s *sqldb.Store) error { return s.Return(t.Context(), "order", last, last.Range.Start) },
		func(s *sqldb.Store) error { return s.Create(t.Context(), segment.Tag{Name: "new", Step: 1}) },
		func(s *sqldb.Store) error {
			_, err := s.Alter(t.Context(), "order", segment.Change{Step: new(int64(7))})
			return err
		},
		func(s *sqldb.Store) error { return s.Delete(t.Context(), "order") },
		func(s *sqldb.Store) error { _, err := s.Advance(t.Context(), "order", 5); return err },
	}
	var stores []*sqldb.Store
	for range calls {
		stores = append(stores, openMySQL(t, hostsDB(t, primary, replica)))
		last = advanceOn(t, stores[len(stores)-1], "1")
	}
	pair.Primary.Exec(t, "", "SET GLOBAL rpl_semi_sync_master_enabled = 0", "SET GLOBAL read_only = 1")
	pair.CatchUp(t)
	pair.Promote(t)
	for i, call := range calls {
		if err := call(stores[i]); err == nil || !strings.Contains(err.Error(), "the server is read-only") {
			t.Errorf("call %d on the former primary: %v", i, err)
		}
	}
	advanceOn(t, stores[0], "2")
}

// A node that stops returns its rest to the server of the grant, or not at all: on another server,
// which lost the grant, the counter may be at the end of another node's range.
func TestMySQLReturnAfterFailOver(t *testing.T) {
	pair, primary, replica := newPair(t)
	pair.Primary.Exec(t, "", "SET GLOBAL rpl_semi_sync_master_enabled = 0")
	pair.Break(t)
	s := openMySQL(t, hostsDB(t, primary, replica))
	lost, err := s.Advance(t.Context(), "order", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.Primary.Kill(); err != nil {
		t.Fatal(err)
	}
	pair.Promote(t)
	other, err := openMySQL(t, hostsDB(t, primary, replica)).Advance(t.Context(), "order", 1000)
	if err != nil || other.Range != lost.Range {
		t.Fatalf("%+v, %v, want %v once more: nothing is tested", other, err, lost.Range)
	}
	lost.Version = other.Version // as if both had been granted within one second
	for tries := 0; ; tries++ {  // the connections to the former server are in the way at first
		err := s.Return(t.Context(), "order", lost, 401)
		if err != nil && strings.Contains(err.Error(), "is of server 1 and this is 2") {
			break
		}
		if err == nil || tries == 10 {
			t.Fatalf("give-back on another server: %v", err)
		}
	}
	if err := s.Return(t.Context(), "order", lost, 401); err == nil {
		t.Error("a second give-back succeeded")
	}
}

// A frozen primary costs a call its time limit, and no more.
func TestMySQLHostsFrozenPrimary(t *testing.T) {
	pair, primary, replica := newPair(t)
	db := hostsDB(t, primary, replica)
	s := openMySQL(t, db)
	advanceOn(t, s, "1")
	fillPool(t, db, 8)
	if err := pair.Primary.Pause(); err != nil {
		t.Fatal(err)
	}
	pair.Promote(t)
	start := time.Now()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if g, _ := awaitAdvance(t, s, 30*time.Second); g.Server != "2" {
				t.Errorf("%+v, want server 2", g)
			}
		})
	}
	wg.Wait()
	const limit = 2*time.Second + time.Second + 20*time.Second // the answer, the search, and a slow machine
	if took := time.Since(start); took > limit {
		t.Errorf("served after %v, want %v at most", took, limit)
	}
}

// The error names a frozen server, for each of the time limits, even with a single server.
func TestMySQLFrozenServerIsNamed(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	database := server.NewDatabase(t)
	server.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	type limits struct{ read, call time.Duration }
	stores := make(map[*sqldb.Store]limits)
	cfg := mysqlConfig(t, server, database)
	for _, limit := range []limits{{700 * time.Millisecond, 5 * time.Second}, {5 * time.Second, 700 * time.Millisecond}} {
		cfg.ReadTimeout = limit.read
		used := openMySQL(t, hostsDB(t, cfg))
		if _, err := used.Advance(t.Context(), "order", 1); err != nil {
			t.Fatal(err)
		}
		stores[used], stores[openMySQL(t, hostsDB(t, cfg))] = limit, limit
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for s, limit := range stores {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit.call)
			defer cancel()
			_, err := s.Advance(ctx, "order", 1)
			if err == nil || !strings.Contains(err.Error(), "check that it runs: "+cfg.Addr) {
				t.Errorf("%+v: %v", limit, err)
			}
		})
	}
	wg.Wait()
}

// A server that accepts connections and says nothing is passed by.
func TestMySQLHostsMuteServer(t *testing.T) {
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	mute, good := mysqlConfig(t, mariadb, database), mysqlConfig(t, mariadb, database)
	mute.Addr, mute.Timeout = l.Addr().String(), 300*time.Millisecond
	s := openMySQL(t, hostsDB(t, mute, good))
	start := time.Now()
	if _, err := s.Advance(t.Context(), "order", 1); err != nil || time.Since(start) > 20*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}

	// A caller that leaves early takes nothing with it.
	s = openMySQL(t, hostsDB(t, mute, good))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Advance(ctx, "order", 1); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with 50 ms: %v", err)
	}
	if _, err := s.Advance(t.Context(), "order", 1); err != nil {
		t.Errorf("the next caller: %v", err)
	}
}

// Two names of one server, as two proxies are.
func TestMySQLHostsOneServer(t *testing.T) {
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	a, b := mysqlConfig(t, mariadb, database), mysqlConfig(t, mariadb, database)
	b.Net, b.Addr = "unix", mariadb.Socket()
	if _, err := openMySQL(t, hostsDB(t, a, b)).Advance(t.Context(), "order", 1); err != nil {
		t.Error(err)
	}
}

func TestMySQLHostsMalformed(t *testing.T) {
	cfg := mysqlConfig(t, mariadb, "x")
	for name, servers := range map[string][]*gomysql.Config{"none": nil, "twice": {cfg, cfg}} {
		if _, err := mysql.NewConnector(servers, nil); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A registry goes over as a store does, and a server of several may forget although it
// has no binary log.
func TestMySQLHostsRegistry(t *testing.T) {
	database := mariadb.NewDatabase(t)
	down := mysqlConfig(t, mariadb, database)
	down.Addr = "127.0.0.1:1"
	db := hostsDB(t, down, mysqlConfig(t, mariadb, database))
	if err := initRegistry(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	r, err := registryOn(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	if epoch, err := r.ServerEpoch(t.Context()); err != nil || !epoch.Lossy {
		t.Errorf("epoch: %+v, %v", epoch, err)
	}
	record := worker.Record{Worker: 3, Term: 1, Owner: "a"}
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 3}, record); err != nil {
		t.Error(err)
	}
	if got, err := r.Load(t.Context(), 3); err != nil || !got.Equal(record) {
		t.Errorf("%+v, %v", got, err)
	}
}

// The store repeats calls that the server undid in favour of others, except a give-back.
func TestMySQLSendsAgain(t *testing.T) {
	for _, undone := range []string{"1213 MESSAGE 'Deadlock found'", "3101 MESSAGE 'Plugin instructed'", "1180 MESSAGE 'Got error 149 during COMMIT'"} {
		number, message, _ := strings.Cut(undone, " MESSAGE ")
		s, database := newMySQL(t, javaTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)",
			"CREATE TABLE tries (n INT) ENGINE=Aria TRANSACTIONAL=0", // its rows survive the rollback
			fmt.Sprintf("CREATE TRIGGER undoes BEFORE UPDATE ON leaf_alloc FOR EACH ROW BEGIN INSERT INTO tries VALUES (1); "+
				"IF (SELECT COUNT(*) FROM tries) %% 3 <> 0 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %s, MESSAGE_TEXT = %s; END IF; END", number, message))
		if _, err := s.Alter(t.Context(), "order", segment.Change{Step: new(int64(20))}); err != nil {
			t.Errorf("%s: alter: %v", undone, err)
		}
		var last segment.Grant
		for i, n := range []int64{5, 0} {
			var err error
			if last, err = s.Advance(t.Context(), "order", n); err != nil || last.Range.Start != 1+5*int64(i) {
				t.Errorf("%s: n = %d: %+v, %v", undone, n, last, err)
			}
		}
		before := triesOf(t, database)
		if err := s.Return(t.Context(), "order", last, last.Range.Start); err == nil || triesOf(t, database) != before+1 {
			t.Errorf("%s: give-back: %v, sent %d times", undone, err, triesOf(t, database)-before)
		}
	}
}

// The registry does not repeat an undone swap. It is a conflict only if the cell has another
// record.
func TestMySQLSwapUndone(t *testing.T) {
	database := mariadb.NewDatabase(t)
	r, err := registryOn(mysqlDB(t, mysqlConfig(t, mariadb, database)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := initRegistry(t.Context(), mysqlDB(t, mysqlConfig(t, mariadb, database))); err != nil {
		t.Fatal(err)
	}
	const undo = " ON leaf_worker FOR EACH ROW BEGIN INSERT INTO tries VALUES (1); SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = 1213; END"
	old, new := worker.Record{Worker: 1, Term: 1}, worker.Record{Worker: 1, Term: 2}
	if _, err := r.Swap(t.Context(), worker.Record{Worker: 1}, old); err != nil {
		t.Fatal(err)
	}
	mariadb.Exec(t, database, "CREATE TABLE tries (n INT) ENGINE=Aria TRANSACTIONAL=0",
		"CREATE TRIGGER undoes_add BEFORE INSERT"+undo, "CREATE TRIGGER undoes BEFORE UPDATE"+undo)
	for i, swap := range [][2]worker.Record{{old, new}, {{Worker: 2}, {Worker: 2, Term: 1}}} {
		_, err := r.Swap(t.Context(), swap[0], swap[1])
		if err == nil || errors.Is(err, worker.ErrConflict) || triesOf(t, database) != i+1 {
			t.Errorf("swap %d: %v; %d statements in all", i, err, triesOf(t, database))
		}
	}
}

func triesOf(t testing.TB, database string) (n int) {
	t.Helper()
	if err := mysqlDB(t, mysqlConfig(t, mariadb, database)).QueryRow("SELECT COUNT(*) FROM tries").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
