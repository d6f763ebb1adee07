package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// A leaseRegistry is where a cluster leases its worker IDs, and what can happen to it.
type leaseRegistry struct {
	*labStore
	bits int  // of the worker IDs of one of the layouts: how scarce they are
	once bool // each start uses up a worker ID
	tags bool // it is the store of a tag, too

	java func(*leaseCluster) // runs servers of Java Leaf until the end
}

// javaPort is replaced in a URL by each node's own number.
const javaPort = "JAVAPORT"

// scarce are so few bits that three servers and two more cannot all have a worker ID.
const scarce = 2

// leaseRegistries are those of the lab. In the short form some of them share the faults.
var leaseRegistries = []struct {
	name  string
	short []string // the faults of the short form; empty: it leaves this registry out
	start func(t *testing.T) *leaseRegistry
}{
	{"sqlite", []string{"kill -9, restart with an emptied disk", "a copy of the disk on another machine", "clock set",
		"state file of the oldest release", "stop, restart", restoredWorkers},
		leaseStore(labSQLite, 5)}, // fast clocks use up worker IDs
	{"mariadb-pair", []string{failedOver, readOnly, "SIGSTOP, SIGCONT", "the way to the store slow", "answers of the store dropped",
		"kill -9, restart"},
		leaseStore(labMariaDBPair, scarce)},
	{"java-tree", []string{"clock strobes", "upgrade, roll-back", storeKilled, "connections to the store cut", "clock wrong at the start"},
		leaseJavaTree},
	{"postgres", []string{"SIGSTOP beyond the lease, SIGCONT", storeFrozen, "connections to the store half open",
		"state file of a newer release", diskFull},
		leaseStore(labPostgres, scarce)},
	{"java-table", nil, leaseJavaTable},
	{"mariadb", nil, leaseStore(labMariaDB, scarce)},
	{"galera", nil, leaseStore(labGalera, scarce)},
	{"postgres-pair", nil, leaseStore(labPostgresPair, scarce)},
	{"etcd", nil, leaseStore(labEtcd, scarce)},
	{"redis", nil, leaseStore(labRedis, scarce)},
	{"redis-sentinel", nil, leaseStore(labRedisSentinel, scarce)},
	{"zookeeper", nil, leaseStore(labZooKeeper, scarce)},
	{"nats", nil, leaseStore(labNATS, scarce)},
	{"worker-node", nil, leaseWorkerNode},
	{"relay", nil, leaseRelay},
}

// leaseHoles are the reasons for leaving out a fault of a registry, in addition to its store's.
var leaseHoles = map[string]map[string]string{
	"sqlite":     {"SIGSTOP beyond the lease, SIGCONT": "more worker IDs than servers, because clocks use them up: TestPausedBeyondTheHorizon"},
	"java-tree":  {"SIGSTOP beyond the lease, SIGCONT": "no other server is given the worker ID"},
	"java-table": {restoredWorkers: "the counter has to be raised: TestRestoredStore"},
	"worker-node": {
		"state file of the oldest release": usedOnce, "state file of a newer release": usedOnce,
		"a copy of the disk on another machine": usedOnce, "SIGSTOP beyond the lease, SIGCONT": usedOnce,
	},
	"relay": {diskFull: "as sqlite, which is behind it", readOnly: "the store behind it is a SQLite file, which no switch makes read-only", restoredWorkers: "the store behind it is the one that is restored: sqlite"},
}

const usedOnce = "a worker ID is used for one start alone, and remembered nowhere"

// hole returns why a fault does not strike a registry, empty if it does.
func (r *leaseRegistry) hole(name string, fault *leaseFault) string {
	if why := leaseHoles[name][fault.name]; why != "" {
		return why
	}
	switch {
	case fault.link && r.unlinked != "":
		return r.unlinked
	case fault.name == restoredWorkers && r.restore == nil:
		return r.labStore.hole(restored)
	case fault.store && r.faults[fault.name].do == nil:
		return r.labStore.hole(fault.name)
	}
	return ""
}

// leaseStore is a store whose database is the registry, too.
func leaseStore(start func(*testing.T) *labStore, bits int) func(*testing.T) *leaseRegistry {
	return func(t *testing.T) *leaseRegistry {
		s := start(t)
		if strings.HasPrefix(s.url, "nats:") {
			s.url, s.admin = s.url+"?claim_delay=0s", s.admin+"?claim_delay=0s" // of processes that are killed it loses nothing
		}
		initWorkers(t, s.admin)
		return &leaseRegistry{labStore: s, bits: bits}
	}
}

// leaseJavaTree is a tree with a server of Java Leaf that uploads its time, and issues.
func leaseJavaTree(t *testing.T) *leaseRegistry {
	z := testserver.ZooKeeper(t)
	tr := newTree(t, z)
	url := fmt.Sprintf("zookeeper://%s%s?layout=leaf&name=%s&ip=%s&port=%s", z.Addr(), tr.chroot, leafName, ourIP, javaPort)
	s := &labStore{url: url, admin: url, addrs: []string{z.Addr()}, faults: machineFaults(t, z, z.Dir)}
	s.holes = map[string]string{readOnly: "as zookeeper"}
	var mu sync.Mutex
	var java *javaNode
	start := func() { java = startJavaNode(t, tr, "192.0.2.9", "8080", nil) } // with mu locked
	backup, restore := cold(t, filepath.Join(z.Dir, "data"), z.Kill, z.Start)
	s.backup, s.restore = backup, func() error { // it is stopped meanwhile, like all others
		mu.Lock()
		defer mu.Unlock()
		java.stop()
		if err := restore(); err != nil {
			return err
		}
		tr.connect() // ZooKeeper refuses sessions that have seen later data
		start()
		return nil
	}
	return &leaseRegistry{labStore: s, bits: 5, java: func(c *leaseCluster) {
		mu.Lock()
		start()
		mu.Unlock()
		c.beside("java", "leaf", func(context.Context) (labcheck.Receipt, error) {
			time.Sleep(20 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			return labcheck.Receipt{Range: java.next()}, nil
		})
	}}
}

// leaseJavaTable is a MariaDB in whose table servers of Java Leaf allocate, too.
func leaseJavaTable(t *testing.T) *leaseRegistry {
	s, m, database := oneMariaDB(t)
	m.Exec(t, database, javaTable...)
	initWorkers(t, s.admin)
	db := openDSN(t, m.DSN(database))
	return &leaseRegistry{labStore: s, bits: scarce, tags: true, java: func(c *leaseCluster) {
		java := &javaLeaf{db: db, tag: sampleTag}
		c.beside("java", sampleTag, func(ctx context.Context) (r labcheck.Receipt, err error) {
			time.Sleep(50 * time.Millisecond)
			java.step = min(java.step, 4000)
			r.Range.Start, r.Range.End, err = java.load(ctx)
			return r, err
		})
	}}
}

// beside makes another program issue in a space of servers until the end.
func (c *leaseCluster) beside(name, space string, next func(context.Context) (labcheck.Receipt, error)) {
	for !c.ended() {
		ctx, cancel := context.WithTimeout(c.t.Context(), 3*time.Second)
		begin := time.Now()
		r, err := next(ctx)
		cancel()
		end := time.Now()
		if err != nil {
			c.history.Fail(labcheck.Failure{Client: name, Begin: begin.Sub(c.start), End: end.Sub(c.start), Err: err})
			continue
		}
		r.Space, r.Server, r.Client, r.Begin, r.End = space, name, name, begin.Sub(c.start), end.Sub(c.start)
		r.ClockBegin, r.ClockEnd = begin.UnixMilli(), end.UnixMilli()
		c.history.Add(r, r.Range)
	}
}

// leaseWorkerNode is uid-generator's table, which gives each start another worker ID.
func leaseWorkerNode(t *testing.T) *leaseRegistry {
	s, m, database := oneMariaDB(t)
	s.url += "?layout=worker_node"
	s.admin = s.url
	initWorkers(t, s.admin)
	db, restore := openDSN(t, m.DSN(database)), s.restore
	s.restore = func() error { // and a row above all dealt ones, as docs/uid-mode.md says
		var latest int64
		if err := db.QueryRow("SELECT MAX(ID) FROM WORKER_NODE").Scan(&latest); err != nil {
			return err
		}
		if err := restore(); err != nil {
			return err
		}
		_, err := db.Exec("INSERT INTO WORKER_NODE VALUES (?, 'lifted', '0', 2, CURRENT_DATE, CURRENT_TIMESTAMP, CURRENT_TIMESTAMP)", latest+1)
		return err
	}
	return &leaseRegistry{labStore: s, once: true}
}

// leaseRelay is another server of ours, with its embedded database.
func leaseRelay(t *testing.T) *leaseRegistry {
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	url := "sqlite:" + filepath.Join(t.TempDir(), "upstream.db")
	initBoth(t, url, []segment.Tag{{Name: sampleTag, MaxID: 1, Step: 100}})
	args := []string{leafBinary, "serve", "--listen", loopback(port), "--store", url, "--data", filepath.Join(t.TempDir(), "data")}
	var up *server
	start := func() error { up = serveBy(t, args...); return nil }
	signal := func(sig syscall.Signal) func() error { return func() error { return up.cmd.Process.Signal(sig) } }
	s := &labStore{url: "leaf://" + loopback(port), addrs: []string{loopback(port)}, faults: map[string]labFault{
		storeFrozen: {signal(syscall.SIGSTOP), signal(syscall.SIGCONT)},
		storeKilled: {func() error { up.kill(); return nil }, start},
	}}
	s.admin = s.url
	_ = start()
	return &leaseRegistry{labStore: s, bits: scarce}
}
