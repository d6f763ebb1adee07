package bench_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

const maxCallers = 32

// An advancer makes one durable allocation.
type advancer interface {
	Advance(ctx context.Context, tag string, n int64) (segment.Grant, error)
}

// engines run while their own figures are measured. All sync to disk before they acknowledge, except
// redis-everysec, which may lose a second, and nats-unsynced, which is NATS with its defaults. The
// first one is the floor of the machine.
var engines = []struct {
	name string
	open func(testing.TB) advancer
}{
	{"file", newFiles},
	{"sqlite", func(tb testing.TB) advancer {
		return openURL(tb, "sqlite:"+filepath.Join(tb.TempDir(), "bench.db"))
	}},
	{"mariadb", func(tb testing.TB) advancer { return openURL(tb, startMariaDB(tb)) }},
	{"mariadb-binlog", func(tb testing.TB) advancer {
		return openURL(tb, startMariaDB(tb, "--log-bin", "--server-id=1", "--sync-binlog=1"))
	}},
	{"postgres", func(tb testing.TB) advancer {
		s := testserver.Postgres(tb, nil)
		return openURL(tb, s.URL(s.NewDatabase(tb)))
	}},
	{"etcd", func(tb testing.TB) advancer { return openURL(tb, startEtcd(tb, 1)) }},
	{"etcd-3-members", func(tb testing.TB) advancer { return openURL(tb, startEtcd(tb, 3)) }},
	{"zookeeper", func(tb testing.TB) advancer { return openURL(tb, "zookeeper://"+testserver.ZooKeeper(tb).Addr()) }},
	{"nats-unsynced", func(tb testing.TB) advancer { return openURL(tb, testserver.NATS(tb).URL()+"/bench") }},
	{"redis-always", func(tb testing.TB) advancer { return openURL(tb, startRedis(tb, "always")) }},
	{"redis-everysec", func(tb testing.TB) advancer { return openURL(tb, startRedis(tb, "everysec")) }},
	{"ticket", func(tb testing.TB) advancer { return openURL(tb, startTickets(tb)) }},
	{"ticket-stride", func(tb testing.TB) advancer { return openURL(tb, startTickets(tb)+"?stride=1000") }},
}

func startMariaDB(tb testing.TB, args ...string) (url string) {
	tb.Helper()
	s := testserver.MariaDB(tb, &testserver.MariaDBOptions{Args: args})
	return s.URL(s.NewDatabase(tb))
}

func startEtcd(tb testing.TB, members int) (url string) {
	tb.Helper()
	return testserver.Etcd(tb, &testserver.EtcdOptions{Members: members}).URL("bench")
}

func startRedis(tb testing.TB, fsync string) (url string) {
	tb.Helper()
	return testserver.Redis(tb, &testserver.RedisOptions{Config: [][2]string{{"appendfsync", fsync}}}).URL()
}

func startTickets(tb testing.TB) (url string) {
	tb.Helper()
	one, other := startMariaDB(tb), startMariaDB(tb)
	return "ticket+" + one + "," + strings.TrimPrefix(other, "mysql://")
}

func benchTag(i int) string { return fmt.Sprint("tag-", i) }

// openURL makes the store that a URL names, with a tag for each caller, and opens it.
func openURL(tb testing.TB, url string) advancer {
	tb.Helper()
	var tags []segment.Tag
	for i := range maxCallers {
		tags = append(tags, segment.Tag{Name: benchTag(i), MaxID: 1, Step: 1000})
	}
	b := openBackend(tb, url)
	if err := b.Tags.Init(tb.Context(), tags...); err != nil {
		tb.Fatal(err)
	}
	return storeOf(tb, b)
}

// openExisting opens a store that openURL has made.
func openExisting(tb testing.TB, url string) advancer { return storeOf(tb, openBackend(tb, url)) }

func openBackend(tb testing.TB, url string) *drivers.Backend {
	tb.Helper()
	b, err := drivers.Open(url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b
}

func storeOf(tb testing.TB, b *drivers.Backend) advancer {
	tb.Helper()
	s, err := b.Store()
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// files are the floor: an allocation is a line at the end of the tag's file, synced.
type files map[string]*lockedFile

type lockedFile struct {
	mu   sync.Mutex
	file *os.File
	next int64
}

func newFiles(tb testing.TB) advancer {
	tb.Helper()
	all, dir := make(files), tb.TempDir()
	for i := range maxCallers {
		file, err := os.Create(filepath.Join(dir, benchTag(i)))
		if err != nil {
			tb.Fatal(err)
		}
		tb.Cleanup(func() { file.Close() })
		all[benchTag(i)] = &lockedFile{file: file}
	}
	return all
}

func (f files) Advance(_ context.Context, tag string, n int64) (segment.Grant, error) {
	l := f[tag]
	l.mu.Lock()
	defer l.mu.Unlock()
	r := leaf.Range{Start: l.next, End: l.next + n}
	if _, err := fmt.Fprintf(l.file, "%020d\n", r.End); err != nil {
		return segment.Grant{}, err
	}
	l.next = r.End
	return segment.Grant{Range: r, Step: n}, l.file.Sync() // of a file that grew: fdatasync does no less
}

// A figure is the result for a number of callers.
type figure struct {
	perSecond float64
	p50, p99  time.Duration
}

// figures are those of one engine, by the number of callers and whether each has a tag
// of its own.
type figures map[string]figure

// BenchmarkStores measures durable allocations, and logs them as a table at its end.
func BenchmarkStores(b *testing.B) {
	var table strings.Builder
	table.WriteString("\n| store | 1 caller | 8 own / same | 32 own / same | p50 / p99 in µs: 1 caller | 32 own | 32 same |\n|---|---|---|---|---|---|---|\n")
	for _, e := range engines {
		b.Run(e.name, func(b *testing.B) {
			s, got := e.open(b), make(figures)
			everyCaller(maxCallers, func(i int) { // has the connections made
				if _, err := s.Advance(b.Context(), benchTag(i), 1000); err != nil {
					b.Error(err)
				}
			})
			for _, callers := range []int{1, 8, maxCallers} {
				for _, tags := range []string{"same", "own"}[:min(callers, 2)] {
					name := fmt.Sprint(callers, "-", tags)
					b.Run(name, func(b *testing.B) { got[name] = measure(b, s, callers, tags == "own") })
				}
			}
			fmt.Fprintf(&table, "| %s | %s | %s / %s | %s / %s | %s | %s | %s |\n", e.name, got.rate("1-same"),
				got.rate("8-own"), got.rate("8-same"), got.rate("32-own"), got.rate("32-same"),
				got.delay("1-same"), got.delay("32-own"), got.delay("32-same"))
		})
	}
	b.Log(table.String())
}

func (f figures) rate(name string) string { return fmt.Sprintf("%.0f", f[name].perSecond) }

func (f figures) delay(name string) string {
	return fmt.Sprintf("%d / %d", f[name].p50.Microseconds(), f[name].p99.Microseconds())
}

// everyCaller runs n callers at the same time.
func everyCaller(n int, call func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { call(i) })
	}
	wg.Wait()
}

// measure has callers make b.N allocations together.
func measure(b *testing.B, s advancer, callers int, own bool) figure {
	var next atomic.Int64
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	everyCaller(callers, func(i int) {
		name := benchTag(0)
		if own {
			name = benchTag(i)
		}
		for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
			began := time.Now()
			if _, err := s.Advance(b.Context(), name, 1000); err != nil {
				b.Error(err)
			}
			took[n-1] = time.Since(began)
		}
	})
	b.StopTimer()
	slices.Sort(took)
	f := figure{float64(b.N) / b.Elapsed().Seconds(), took[len(took)/2], took[len(took)*99/100]}
	b.ReportMetric(f.perSecond, "allocations/s")
	b.ReportMetric(float64(f.p50.Microseconds()), "p50-µs")
	b.ReportMetric(float64(f.p99.Microseconds()), "p99-µs")
	return f
}

// TestStores runs each advancer without a server once.
func TestStores(t *testing.T) {
	for _, e := range engines[:2] {
		t.Run(e.name, func(t *testing.T) {
			s := e.open(t)
			var got drivertest.Ranges
			everyCaller(8, func(int) {
				for range 20 {
					grant, err := s.Advance(t.Context(), benchTag(0), 1000)
					if err != nil {
						t.Error(err)
					}
					got.Add(grant.Range)
				}
			})
			if err := got.Check(); err != nil || got.Count() != 8*20*1000 {
				t.Errorf("%d IDs, %v", got.Count(), err)
			}
		})
	}
}
