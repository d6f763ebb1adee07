package bench_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"
	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

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
}

// A bareSQL is one prepared statement, which MySQL has no RETURNING for.
type bareSQL struct {
	stmt *sql.Stmt
	ids  bool // the new value is the insert ID
}

func newBareSQL(tb testing.TB, driver, dsn, statement string) advancer {
	tb.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { db.Close() })
	db.SetMaxIdleConns(maxCallers)
	statements := []string{"CREATE TABLE bare (tag VARCHAR(64) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL)"}
	for i := range maxCallers {
		statements = append(statements, fmt.Sprintf("INSERT INTO bare VALUES ('%s', 1)", benchTag(i)))
	}
	for _, s := range statements {
		if _, err := db.ExecContext(tb.Context(), s); err != nil {
			tb.Fatal(err)
		}
	}
	stmt, err := db.PrepareContext(tb.Context(), statement)
	if err != nil {
		tb.Fatal(err)
	}
	return bareSQL{stmt, driver == "mysql"}
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

// BenchmarkDrivers measures each driver and its bare loop in turns, and logs them as a table at its
// end. The processor time is that of the client.
func BenchmarkDrivers(b *testing.B) {
	var table strings.Builder
	table.WriteString("\n| driver | callers | CPU µs an allocation | of the bare loop | ratio, at most 1.2 | allocations a second |" +
		" of the bare loop | ratio, at least 1 | round trips |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, e := range bareLoops {
		b.Run(e.name, func(b *testing.B) {
			u, bare := e.open(b)
			driver := openURL(b, u)
			trips := countTrips(b, u)
			for _, callers := range []int{1, maxCallers} {
				inTurns(b, driver, bare, callers, 200*time.Millisecond) // has the connections made
				cpu, rate := make([][]float64, 3), make([][]float64, 3)
				for range 5 {
					c, r := inTurns(b, driver, bare, callers, 500*time.Millisecond)
					for i, x := range []float64{c[0], c[1], c[0] / c[1]} {
						cpu[i] = append(cpu[i], x)
					}
					for i, x := range []float64{r[0], r[1], r[0] / r[1]} {
						rate[i] = append(rate[i], x)
					}
				}
				fmt.Fprintf(&table, "| %s | %d | %.0f | %.0f | %.2f | %.0f | %.0f | %.2f | %.2f |\n", e.name, callers, middle(cpu[0]), middle(cpu[1]),
					middle(cpu[2]), middle(rate[0]), middle(rate[1]), middle(rate[2]), trips)
			}
		})
	}
	b.Log(table.String())
}

func middle(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// inTurns runs both and returns the client's processor time of an allocation in µs, and allocations a
// second.
func inTurns(b *testing.B, driver, bare advancer, callers int, d time.Duration) (cpu, rate [2]float64) {
	b.Helper()
	for i, s := range []advancer{driver, bare} {
		var count atomic.Int64
		began, used := time.Now(), selfTime(b)
		everyCaller(callers, func(i int) {
			for time.Since(began) < d {
				if _, err := s.Advance(b.Context(), benchTag(i), 1000); err != nil {
					b.Error(err)
					return
				}
				count.Add(1)
			}
		})
		n := float64(max(1, count.Load()))
		cpu[i], rate[i] = (selfTime(b)-used).Seconds()*1e6/n, n/time.Since(began).Seconds()
	}
	return cpu, rate
}

// selfTime is the processor time of this process.
func selfTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// countTrips returns the round trips of an allocation: how often a client sends after an answer, through
// a proxy.
func countTrips(b *testing.B, storeURL string) float64 {
	b.Helper()
	u, err := url.Parse(storeURL)
	if err != nil {
		b.Fatal(err)
	}
	server := u.Host
	var trips atomic.Int64
	u.Host = testserver.Proxy(b, func(client net.Conn) {
		conn, err := net.Dial("tcp", server)
		if err != nil {
			b.Error(err)
			return
		}
		defer conn.Close()
		var answered atomic.Bool
		answered.Store(true)
		go func() {
			_, _ = io.Copy(writerFunc(func(p []byte) (int, error) { answered.Store(true); return client.Write(p) }), conn)
			client.Close()
		}()
		_, _ = io.Copy(writerFunc(func(p []byte) (int, error) {
			if answered.Swap(false) {
				trips.Add(1)
			}
			return conn.Write(p)
		}), client)
	})
	s := openExisting(b, u.String())
	const calls = 200
	for i := range calls + 20 {
		if i == 20 {
			trips.Store(0)
		}
		if _, err := s.Advance(b.Context(), benchTag(0), 1000); err != nil {
			b.Fatal(err)
		}
	}
	return float64(trips.Load()) / calls
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
