package e2e

import (
	"cmp"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// A labStore is a store that three servers share, and what can happen to it.
type labStore struct {
	url   string   // for servers
	admin string   // for commands
	addrs []string // HOST:PORT in url, which servers reach through proxies
	most  int      // IDs that one call may ask for

	loss      *loss // a fail-over may lose acknowledged writes; nil: it does not
	unordered bool  // IDs of one server need not ascend
	uncounted bool  // the store does not count a server's grants

	faults   map[string]labFault
	holes    map[string]string // by fault, the reason for leaving it out
	unlinked string            // the reason for having no proxy between it and servers

	backup, restore func() error
}

// A labFault strikes a store until undo.
type labFault struct{ do, undo func() error }

// A loss is a fail-over to a replica that lacks the last writes.
type loss struct{ cut, over, back func() error }

// fault returns the loss as a nemesis.
func (l *loss) fault() labFault {
	return labFault{func() error {
		err := l.cut()
		time.Sleep(300 * time.Millisecond) // meanwhile servers take ranges that will be lost
		return errors.Join(err, l.over())
	}, l.back}
}

// hole returns why a store has no such fault; empty: it has.
func (s *labStore) hole(name string) string {
	switch {
	case s.faults[name].do != nil:
		return ""
	case name == diskFull && !canMount():
		return "not as root: no small disk can be mounted"
	}
	return cmp.Or(s.holes[name], commonHoles[name], "no reason is known: add one")
}

// commonHoles are the reasons of most stores.
var commonHoles = map[string]string{
	failedOver:   "one server alone: no replica takes over",
	fileLinked:   databaseFiles,
	fileMoved:    databaseFiles,
	fileReplaced: databaseFiles,
	fileBeside:   databaseFiles,
}

const databaseFiles = "servers do not open the store's files"

var labStores = map[string]func(t *testing.T) *labStore{
	"sqlite":         labSQLite,
	"mariadb":        labMariaDB,
	"mariadb-pair":   labMariaDBPair,
	"galera":         labGalera,
	"postgres":       labPostgres,
	"postgres-pair":  labPostgresPair,
	"etcd":           labEtcd,
	"redis":          labRedis,
	"redis-sentinel": labRedisSentinel,
	"zookeeper":      labZooKeeper,
	"nats":           labNATS,
	"tickets":        labTickets,
	"relay":          labRelay,
}

// A machine is a process of a database.
type machine interface {
	Pause() error
	Resume() error
	Kill() error
	Start() error
}

// machineFaults are those of a database of one process.
func machineFaults(t *testing.T, m machine, dir string) map[string]labFault {
	return map[string]labFault{
		storeFrozen: {m.Pause, m.Resume},
		storeKilled: {m.Kill, m.Start},
		diskFull:    smallDisk(t, dir, m.Kill, m.Start),
	}
}

// inTurn has a fault strike one member of a set after the other.
func inTurn(n int, do, undo func(int) error) labFault {
	i := -1
	return labFault{func() error { i++; return do(i % n) }, func() error { return undo(i % n) }}
}

// together makes one call for each member of a set at once.
func together(n int, do func(int) error) func() error {
	return func() error {
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() { errs[i] = do(i) })
		}
		wg.Wait()
		return errors.Join(errs...)
	}
}

// cold returns how to save and restore a folder while its database is down.
func cold(t *testing.T, dir string, kill, start func() error) (backup, restore func() error) {
	saved := filepath.Join(t.TempDir(), "saved")
	down := func(from, to string) func() error {
		return func() error {
			if err := kill(); err != nil {
				return err
			}
			return errors.Join(replaceFolder(from, to), start())
		}
	}
	return down(dir, saved), down(saved, dir)
}

func loopback(port int) string { return fmt.Sprint("127.0.0.1:", port) }

func labMariaDB(t *testing.T) *labStore {
	s, _, _ := oneMariaDB(t)
	return s
}

func oneMariaDB(t *testing.T) (s *labStore, m *testserver.MariaDBServer, database string) {
	m = testserver.MariaDB(t, nil)
	database = m.NewDatabase(t)
	s = &labStore{most: labBatch, url: labUser(t, m, database), addrs: []string{loopback(m.Port)}, faults: machineFaults(t, m, m.Dir)}
	s.admin = s.url
	s.faults[readOnly] = mariadbReadOnly(t, func() []*testserver.MariaDBServer { return []*testserver.MariaDBServer{m} })
	s.backup, s.restore = dump(t, database, func() *testserver.MariaDBServer { return m })
	return s, m, database
}

// labUser makes a user for a database, whom read_only keeps from writing, and returns the URL.
func labUser(t *testing.T, m *testserver.MariaDBServer, database string) string {
	m.Exec(t, "", "CREATE USER IF NOT EXISTS lab", "GRANT ALL ON "+database+".* TO lab")
	return asLabUser(m.URL(database))
}

func asLabUser(url string) string { return strings.Replace(url, "root@", "lab@", 1) }

func mariadbReadOnly(t *testing.T, servers func() []*testserver.MariaDBServer) labFault {
	set := func(value int) func() error {
		return func() error {
			for _, m := range servers() {
				m.Exec(t, "", fmt.Sprint("SET GLOBAL read_only = ", value))
			}
			return nil
		}
	}
	return labFault{set(1), set(0)}
}

// dump saves a MariaDB database, and puts it back, on whichever server has it now.
func dump(t *testing.T, database string, server func() *testserver.MariaDBServer) (backup, restore func() error) {
	saved := filepath.Join(t.TempDir(), database+".sql")
	as := func() []string { return []string{"--no-defaults", "--user=root", "--socket=" + server().Socket()} }
	return func() error {
			tool(t, "", append(append([]string{"mariadb-dump"}, as()...), "--single-transaction", "--result-file="+saved, database)...)
			return nil
		}, func() error {
			tool(t, saved, append(append([]string{"mariadb"}, as()...), database)...)
			return nil
		}
}

func labMariaDBPair(t *testing.T) *labStore {
	s, _ := mariaDBPairStore(t, impatient)
	return s
}

func mariaDBPairStore(t *testing.T, opts testserver.MariaDBPairOptions) (s *labStore, p *testserver.MariaDBPairServer) {
	p = testserver.MariaDBPair(t, &opts)
	database := p.Primary.NewDatabase(t)
	labUser(t, p.Primary, database)
	p.CatchUp(t)
	s = &labStore{most: labBatch, url: asLabUser(p.URL(database)), addrs: []string{loopback(p.Primary.Port), loopback(p.Replica.Port)}}
	s.admin = s.url
	primary := func() *testserver.MariaDBServer { return p.Primary }
	s.loss = &loss{
		cut:  func() error { p.Break(t); return nil },
		over: func() error { failOver(t, p); return nil },
		back: func() error { p.SwitchRoles(t); return nil },
	}
	s.faults = pairFaults(func() machine { return p.Primary }, s.loss)
	s.faults[readOnly] = mariadbReadOnly(t, func() []*testserver.MariaDBServer { return []*testserver.MariaDBServer{p.Primary} })
	s.backup, s.restore = dump(t, database, primary)
	s.holes = map[string]string{diskFull: fullAlone}
	return s, p
}

const fullAlone = "as one server of its kind: the replica has no part in it"

// pairFaults are those of the present primary of a pair.
func pairFaults(primary func() machine, l *loss) map[string]labFault {
	return map[string]labFault{
		storeFrozen: {func() error { return primary().Pause() }, func() error { return primary().Resume() }},
		storeKilled: {func() error { return primary().Kill() }, func() error { return primary().Start() }},
		failedOver:  l.fault(),
	}
}

func labGalera(t *testing.T) *labStore {
	c := testserver.Galera(t)
	database := c.Member(0).NewDatabase(t)
	labUser(t, c.Member(0), database)
	c.CatchUp(t)
	s := &labStore{most: labBatch, url: asLabUser(c.URL(database, 0)), holes: map[string]string{failedOver: "all members have each commit: a fail-over loses none"}}
	s.admin = s.url
	var members []*testserver.MariaDBServer
	for i := range 3 {
		members = append(members, c.Member(i))
		s.addrs = append(s.addrs, loopback(c.Member(i).Port))
	}
	s.faults = map[string]labFault{
		storeFrozen: inTurn(3, c.Pause, c.Resume),
		storeKilled: inTurn(3, c.Kill, c.Restart),
		readOnly:    mariadbReadOnly(t, func() []*testserver.MariaDBServer { return members }),
		diskFull:    smallDisk(t, c.Member(1).Dir, func() error { return c.Kill(1) }, func() error { return c.Restart(1) }),
	}
	s.backup, s.restore = dump(t, database, func() *testserver.MariaDBServer { return c.Member(0) })
	return s
}

func labPostgres(t *testing.T) *labStore {
	p := testserver.Postgres(t, nil)
	s := &labStore{most: labBatch, url: p.URL(p.NewDatabase(t)), addrs: []string{loopback(p.Port)}, faults: machineFaults(t, p, p.Dir)}
	s.admin = s.url
	s.faults[readOnly] = postgresReadOnly(t, func() *testserver.PostgresServer { return p })
	s.backup, s.restore = postgresDump(t, s.url)
	return s
}

func postgresReadOnly(t *testing.T, server func() *testserver.PostgresServer) labFault {
	set := func(value string) func() error {
		return func() error {
			server().Exec(t, "postgres", "ALTER SYSTEM SET default_transaction_read_only = "+value, "SELECT pg_reload_conf()")
			return nil
		}
	}
	return labFault{set("on"), set("off")}
}

// postgresDump saves a database, and puts it back, on whichever server can be written now.
func postgresDump(t *testing.T, url string) (backup, restore func() error) {
	saved := filepath.Join(t.TempDir(), "leaf.sql")
	url += "&target_session_attrs=read-write"
	return func() error { tool(t, "", "pg_dump", "--clean", "--if-exists", "--file="+saved, url); return nil },
		func() error {
			tool(t, "", "psql", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--quiet", "--file="+saved, url)
			return nil
		}
}

func labPostgresPair(t *testing.T) *labStore {
	s, _ := postgresPairStore(t)
	return s
}

func postgresPairStore(t *testing.T) (s *labStore, p *testserver.PostgresPairServer) {
	p = testserver.PostgresPair(t)
	s = &labStore{most: labBatch, url: p.URL(p.Primary.NewDatabase(t)), addrs: []string{loopback(p.Primary.Port), loopback(p.Standby.Port)}}
	p.CatchUp(t)
	s.admin = s.url
	s.loss = &loss{
		cut:  func() error { p.Break(t); return nil },
		over: func() error { p.FailOver(t); return nil },
		back: func() error { p.SwitchRoles(t); return nil },
	}
	s.faults = pairFaults(func() machine { return p.Primary }, s.loss)
	s.faults[readOnly] = postgresReadOnly(t, func() *testserver.PostgresServer { return p.Primary })
	s.backup, s.restore = postgresDump(t, s.url)
	s.holes = map[string]string{diskFull: fullAlone}
	return s, p
}

func labEtcd(t *testing.T) *labStore {
	c := testserver.Etcd(t, &testserver.EtcdOptions{Members: 3})
	killAll, startAll := together(3, c.Kill), together(3, c.Restart)
	s := &labStore{most: labBatch, url: c.URL("lab"), addrs: c.Endpoints(), holes: map[string]string{failedOver: "a majority has each write that was acknowledged: a fail-over loses none"}}
	s.admin = s.url
	s.faults = map[string]labFault{
		storeFrozen: inTurn(3, c.Pause, c.Resume),
		storeKilled: inTurn(3, c.Kill, c.Restart),
		readOnly:    {etcdAlarm(c, "ACTIVATE"), etcdAlarm(c, "DEACTIVATE")},
		diskFull:    smallDisk(t, c.Dir, killAll, startAll),
	}
	s.backup, s.restore = cold(t, c.Dir, killAll, startAll)
	return s
}

// etcdAlarm raises or ends the alarm under which etcd refuses writes.
func etcdAlarm(c *testserver.EtcdCluster, action string) func() error {
	return func() error {
		body := strings.NewReader(`{"action":"` + action + `","memberID":"1","alarm":"NOSPACE"}`)
		resp, err := http.Post("http://"+c.Endpoints()[0]+"/v3/maintenance/alarm", "application/json", body)
		if err != nil {
			return err
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusOK {
			return fmt.Errorf("etcd: %s", resp.Status)
		}
		return nil
	}
}

func labRedis(t *testing.T) *labStore {
	r := testserver.Redis(t, nil)
	s := &labStore{most: labBatch, url: r.URL(), admin: r.URL(), addrs: []string{r.Addr()}, faults: machineFaults(t, r, r.Dir)}
	s.faults[readOnly] = redisReadOnly(1, r)
	s.backup, s.restore = cold(t, filepath.Join(r.Dir, "appendonlydir"), r.Kill, r.Start)
	return s
}

// redisReadOnly requires more replicas than exist.
func redisReadOnly(replicas int, servers ...*testserver.RedisServer) labFault {
	set := func(n int) func() error {
		return func() (err error) {
			for _, r := range servers {
				_, e := r.Do("CONFIG", "SET", "min-replicas-to-write", fmt.Sprint(n))
				err = errors.Join(err, e)
			}
			return err
		}
	}
	return labFault{set(replicas), set(0)}
}

func labRedisSentinel(t *testing.T) *labStore {
	p := testserver.RedisWithReplica(t, nil)
	s := &labStore{most: labBatch, url: p.URL(), admin: p.URL(), unlinked: "servers learn the primary's address from the sentinel, and go there past any proxy"}
	s.faults = map[string]labFault{
		storeFrozen: {func() error { return p.Primary.Pause() }, func() error { return errors.Join(p.Primary.Resume(), p.Restore()) }},
		storeKilled: {func() error { return p.Primary.Kill() }, p.Restore},
		readOnly:    redisReadOnly(2, p.Primary, p.Replica), // whichever is the primary
	}
	s.loss = &loss{cut: p.Break, over: p.FailOver, back: p.Restore}
	s.faults[failedOver] = s.loss.fault()
	s.holes = map[string]string{diskFull: fullAlone, restored: "as redis: the sentinel has no part in it"}
	return s
}

func labNATS(t *testing.T) *labStore {
	n := testserver.NATS(t)
	s := &labStore{most: labBatch, url: n.URL(), admin: n.URL(), addrs: []string{n.Addr()}, faults: machineFaults(t, n, n.Dir)}
	s.faults[readOnly] = natsReadOnly(t, n.URL())
	s.backup, s.restore = cold(t, filepath.Join(n.Dir, "data"), n.Kill, n.Start)
	return s
}

func labZooKeeper(t *testing.T) *labStore {
	z := testserver.ZooKeeper(t)
	url := "zookeeper://" + z.Addr()
	s := &labStore{most: labBatch, url: url, admin: url, addrs: []string{z.Addr()}, faults: machineFaults(t, z, z.Dir)}
	s.faults[readOnly] = zookeeperReadOnly(z.Addr())
	s.backup, s.restore = cold(t, filepath.Join(z.Dir, "data"), z.Kill, z.Start)
	return s
}

// labTickets are two servers that deal blocks in turn.
func labTickets(t *testing.T) *labStore {
	both := []*testserver.MariaDBServer{testserver.MariaDB(t, nil), testserver.MariaDB(t, nil)}
	var urls []string
	s := &labStore{most: 100_000, unordered: true, uncounted: true, holes: map[string]string{failedOver: "no server takes over for another"}}
	var backups, restores []func() error
	for _, m := range both {
		database := m.NewDatabase(t)
		urls = append(urls, strings.TrimPrefix(labUser(t, m, database), "mysql://"))
		s.addrs = append(s.addrs, loopback(m.Port))
		backup, restore := dump(t, database, func() *testserver.MariaDBServer { return m })
		backups, restores = append(backups, backup), append(restores, restore)
	}
	s.url = "ticket+mysql://" + strings.Join(urls, ",") + "?stride=100000"
	s.admin = s.url
	s.faults = map[string]labFault{
		storeFrozen: inTurn(2, func(i int) error { return both[i].Pause() }, func(i int) error { return both[i].Resume() }),
		storeKilled: inTurn(2, func(i int) error { return both[i].Kill() }, func(i int) error { return both[i].Start() }),
		readOnly:    mariadbReadOnly(t, func() []*testserver.MariaDBServer { return both }),
		diskFull:    smallDisk(t, both[0].Dir, both[0].Kill, both[0].Start),
	}
	s.backup = func() error { return errors.Join(backups[0](), backups[1]()) }
	s.restore = func() error { return errors.Join(restores[0](), restores[1]()) }
	return s
}

// labRelay are servers whose store is two other servers, on a MariaDB.
func labRelay(t *testing.T) *labStore {
	m := testserver.MariaDB(t, nil)
	database := m.NewDatabase(t)
	s := &labStore{most: labBatch, unordered: true, uncounted: true, admin: labUser(t, m, database)}
	file := config(t, "leaf.yaml", labConfig)
	up, start := make([]*server, 2), make([]func() error, 2)
	for i := range up {
		port, err := testserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s.addrs = append(s.addrs, loopback(port))
		args := []string{leafBinary, "serve", "--listen", loopback(port), "--config", file, "--store", s.admin, "--data", filepath.Join(t.TempDir(), "data")}
		start[i] = func() error { up[i] = serveBy(t, args...); return nil }
		_ = start[i]()
	}
	s.url = "leaf://" + strings.Join(s.addrs, ",")
	signal := func(sig syscall.Signal) func(int) error {
		return func(i int) error { return up[i].cmd.Process.Signal(sig) }
	}
	kill := func(i int) error { up[i].kill(); return nil }
	s.faults = map[string]labFault{
		storeFrozen: inTurn(2, signal(syscall.SIGSTOP), signal(syscall.SIGCONT)),
		storeKilled: inTurn(2, kill, func(i int) error { return start[i]() }),
		readOnly:    mariadbReadOnly(t, func() []*testserver.MariaDBServer { return []*testserver.MariaDBServer{m} }),
	}
	s.holes = map[string]string{diskFull: "as mariadb, which is behind it", failedOver: "its servers have no replicas; a fail-over of the store behind them is that store's"}
	backup, restore := dump(t, database, func() *testserver.MariaDBServer { return m })
	s.restore = func() error { return errors.Join(together(2, kill)(), restore()) }
	s.backup = func() error { // and what restore ended goes on
		for i, u := range up {
			select {
			case <-u.exited:
				_ = start[i]()
			default:
			}
		}
		return backup()
	}
	return s
}

func labSQLite(t *testing.T) *labStore {
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	full := smallDisk(t, dir, nil, nil)
	file := filepath.Join(dir, "ids.db")
	s := &labStore{most: labBatch, url: "sqlite:" + file, admin: "sqlite:" + file, unlinked: "a file of this machine, to which there are no connections"}
	s.holes = map[string]string{
		storeKilled: "no process of its own",
		readOnly:    "a file system with files open for writing cannot become read-only",
	}
	s.faults = fileFaults(t, file)
	s.faults[diskFull], s.faults[storeFrozen] = full, lockedFile(t, file)
	b := sqliteBackup(file, filepath.Join(t.TempDir(), "backup.db"))
	s.backup, s.restore = b.do, b.undo
	return s
}

// lockedFile has another program hold the lock of an SQLite file.
func lockedFile(t *testing.T, file string) labFault {
	var db *sql.DB
	return labFault{func() (err error) {
		if db, err = sql.Open("sqlite", file+"?_pragma=busy_timeout(10000)"); err != nil {
			return err
		}
		db.SetMaxOpenConns(1)
		_, err = db.ExecContext(t.Context(), "BEGIN IMMEDIATE")
		return err
	}, func() error { return db.Close() }}
}
