package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	_ "modernc.org/sqlite"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// bareLoops are drivers and the least that their client libraries can do for an allocation: one
// statement, transaction or script, without an identity of the store, options or checks.
var bareLoops = []struct {
	name string
	open func(testing.TB) (url string, bare advancer)
}{
	{"mariadb", func(tb testing.TB) (string, advancer) {
		s := testserver.MariaDB(tb, nil)
		name := s.NewDatabase(tb)
		return s.URL(name), newBareSQL(tb, "mysql", s.DSN(name), "UPDATE bare SET max_id = LAST_INSERT_ID(max_id + ?) WHERE tag = ?")
	}},
	{"mariadb, to its packet", func(tb testing.TB) (string, advancer) {
		s := testserver.MariaDB(tb, nil)
		name := s.NewDatabase(tb)
		return s.URL(name), newBarePacket(tb, s.DSN(name)+"&multiStatements=true&interpolateParams=true")
	}},
	{"postgres", func(tb testing.TB) (string, advancer) {
		s := testserver.Postgres(tb, nil)
		u := s.URL(s.NewDatabase(tb))
		return u, newBareSQL(tb, "pgx", u, "UPDATE bare SET max_id = max_id + $1 WHERE tag = $2 RETURNING max_id")
	}},
	{"etcd", func(tb testing.TB) (string, advancer) {
		c := testserver.Etcd(tb, nil)
		client, err := clientv3.New(clientv3.Config{Endpoints: c.Endpoints()})
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { client.Close() })
		return c.URL("bench"), &bareEtcd{client: client}
	}},
	{"redis", func(tb testing.TB) (string, advancer) {
		s := testserver.Redis(tb, nil)
		client := goredis.NewClient(&goredis.Options{Addr: s.Addr()})
		tb.Cleanup(func() { client.Close() })
		return s.URL(), bareRedis{client, goredis.NewScript("return redis.call('INCRBY', KEYS[1], ARGV[1])")}
	}},
	{"sqlite", func(tb testing.TB) (string, advancer) {
		dir := tb.TempDir()
		dsn := "file:" + filepath.Join(dir, "bare.db") + "?_pragma=journal_mode(wal)&_pragma=synchronous(extra)"
		return "sqlite:" + filepath.Join(dir, "driver.db"), newBareSQL(tb, "sqlite", dsn, "UPDATE bare SET max_id = max_id + ? WHERE tag = ? RETURNING max_id")
	}},
	{"nats", func(tb testing.TB) (string, advancer) {
		s := testserver.NATS(tb)
		return s.URL() + "/bench", newBareNATS(tb, s.URL())
	}},
	{"zookeeper", func(tb testing.TB) (string, advancer) {
		s := testserver.ZooKeeper(tb)
		return "zookeeper://" + s.Addr(), newBareZooKeeper(tb, s.Addr())
	}},
}

// A bareSQL is one prepared statement, which MySQL has no RETURNING for.
type bareSQL struct {
	stmt *sql.Stmt
	ids  bool // the new value is the insert ID
}

func newBareSQL(tb testing.TB, driver, dsn, statement string) advancer {
	tb.Helper()
	stmt, err := newBareDB(tb, driver, dsn).PrepareContext(tb.Context(), statement)
	if err != nil {
		tb.Fatal(err)
	}
	return bareSQL{stmt, driver == "mysql"}
}

// newBareDB opens a database and makes the table bare.
func newBareDB(tb testing.TB, driver, dsn string) *sql.DB {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(maxCallers)
	if driver == "sqlite" {
		db.SetMaxOpenConns(1) // a second one would only wait for the lock of the first
	}
	statements := []string{"CREATE TABLE bare (tag VARCHAR(64) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL)"}
	for i := range maxCallers {
		statements = append(statements, fmt.Sprintf("INSERT INTO bare VALUES ('%s', 1)", benchTag(i)))
	}
	for _, s := range statements {
		if _, err := db.ExecContext(tb.Context(), s); err != nil {
			tb.Fatal(err)
		}
	}
	return db
}

// A barePacket is the least that reads the row in the packet that moves it: two statements, which
// cannot be prepared.
type barePacket struct{ db *sql.DB }

func newBarePacket(tb testing.TB, dsn string) advancer {
	tb.Helper()
	return barePacket{newBareDB(tb, "mysql", dsn)}
}

func (s barePacket) Advance(ctx context.Context, tag string, n int64) (g segment.Grant, err error) {
	return g, s.db.QueryRowContext(ctx, "UPDATE bare SET max_id = LAST_INSERT_ID(max_id + ?) WHERE tag = ?; SELECT LAST_INSERT_ID() FROM bare WHERE tag = ?",
		n, tag, tag).Scan(&g.Range.End)
}

func (s bareSQL) Advance(ctx context.Context, tag string, n int64) (g segment.Grant, err error) {
	if !s.ids {
		return g, s.stmt.QueryRowContext(ctx, n, tag).Scan(&g.Range.End)
	}
	res, err := s.stmt.ExecContext(ctx, n, tag)
	if err != nil {
		return g, err
	}
	g.Range.End, err = res.LastInsertId()
	return g, err
}

// A bareEtcd remembers each counter, so that an allocation is one transaction. Each tag has one caller.
type bareEtcd struct {
	client *clientv3.Client
	known  sync.Map // by tag: its int64
}

func (s *bareEtcd) Advance(ctx context.Context, tag string, n int64) (g segment.Grant, err error) {
	old, _ := s.known.LoadOrStore(tag, int64(0))
	g.Range.End = old.(int64) + n
	is := clientv3.Compare(clientv3.Value(tag), "=", fmt.Sprint(old))
	if old == int64(0) {
		is = clientv3.Compare(clientv3.CreateRevision(tag), "=", 0)
	}
	res, err := s.client.Txn(ctx).If(is).Then(clientv3.OpPut(tag, fmt.Sprint(g.Range.End))).Commit()
	if err == nil && !res.Succeeded {
		err = fmt.Errorf("%s is not %v", tag, old)
	}
	s.known.Store(tag, g.Range.End)
	return g, err
}

type bareRedis struct {
	client *goredis.Client
	script *goredis.Script
}

func (s bareRedis) Advance(ctx context.Context, tag string, n int64) (g segment.Grant, err error) {
	g.Range.End, err = s.script.Run(ctx, s.client, []string{tag}, n).Int64()
	return g, err
}

// A bareNATS remembers each counter and the number of its last message, so that an allocation is one
// message that names that number.
type bareNATS struct {
	js    jetstream.JetStream
	known sync.Map // by tag: its natsCounter
}

type natsCounter struct {
	maxID    int64
	sequence uint64
}

const bareStream = "BARE"

func newBareNATS(tb testing.TB, url string) advancer {
	tb.Helper()
	conn, err := nats.Connect(url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err == nil {
		_, err = js.CreateStream(tb.Context(), jetstream.StreamConfig{Name: bareStream, Subjects: []string{bareStream + ".>"},
			MaxMsgsPerSubject: 1, Storage: jetstream.FileStorage})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return &bareNATS{js: js}
}

func (s *bareNATS) Advance(ctx context.Context, tag string, n int64) (g segment.Grant, err error) {
	old, _ := s.known.LoadOrStore(tag, natsCounter{})
	c := old.(natsCounter)
	g.Range.End = c.maxID + n
	ack, err := s.js.Publish(ctx, bareStream+"."+tag, fmt.Append(nil, g.Range.End), jetstream.WithExpectLastSequencePerSubject(c.sequence))
	if err == nil {
		s.known.Store(tag, natsCounter{g.Range.End, ack.Sequence})
	}
	return g, err
}

// A bareZooKeeper remembers each counter and how often its node was written, so that an allocation is
// one write that names that number.
type bareZooKeeper struct {
	conn  *zk.Conn
	known sync.Map // by tag: its zkCounter
}

type zkCounter struct {
	maxID   int64
	version int32
}

func newBareZooKeeper(tb testing.TB, addr string) advancer {
	tb.Helper()
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(conn.Close)
	for i := range maxCallers {
		if _, err := conn.Create("/"+benchTag(i), nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)); err != nil {
			tb.Fatal(err)
		}
	}
	return &bareZooKeeper{conn: conn}
}

func (s *bareZooKeeper) Advance(_ context.Context, tag string, n int64) (g segment.Grant, err error) {
	old, _ := s.known.LoadOrStore(tag, zkCounter{})
	c := old.(zkCounter)
	g.Range.End = c.maxID + n
	stat, err := s.conn.Set("/"+tag, fmt.Append(nil, g.Range.End), c.version)
	if err == nil {
		s.known.Store(tag, zkCounter{g.Range.End, stat.Version})
	}
	return g, err
}
