package bench_test

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// BenchmarkDrivers measures each driver and its bare loop in turns, and logs them as a table at its
// end. The processor time is that of the client.
func BenchmarkDrivers(b *testing.B) {
	var table strings.Builder
	table.WriteString("\n| driver | callers | CPU µs an allocation | of the bare loop | ratio, at most 1.2 | objects in memory | of the bare loop |" +
		" allocations a second | of the bare loop | ratio, at least 1 | round trips |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, e := range bareLoops {
		b.Run(e.name, func(b *testing.B) {
			u, bare := e.open(b)
			driver := openURL(b, u)
			trips := countTrips(b, u)
			for _, callers := range []int{1, maxCallers} {
				both := [2]advancer{driver, bare}
				inTurns(b, both, callers, 200*time.Millisecond) // has the connections made
				var all [2][]cost
				for range 15 {
					for i, c := range inTurns(b, both, callers, 200*time.Millisecond) {
						all[i] = append(all[i], c)
					}
				}
				costRow(&table, e.name, callers, all, trips)
			}
		})
	}
	b.Log(table.String())
}

// A cost is that of allocations in one turn.
type cost struct {
	cpu     float64 // of this process, µs an allocation
	objects float64 // that an allocation makes in memory
	rate    float64 // allocations a second
}

func costRow(table *strings.Builder, name string, callers int, all [2][]cost, trips float64) {
	of := func(f func(cost) float64) (driver, bare, ratio float64) {
		var each [3][]float64
		for i := range all[0] {
			x, y := f(all[0][i]), f(all[1][i])
			for j, v := range []float64{x, y, x / y} {
				each[j] = append(each[j], v)
			}
		}
		return middle(each[0]), middle(each[1]), middle(each[2])
	}
	cpu, bareCPU, more := of(func(c cost) float64 { return c.cpu })
	objects, bareObjects, _ := of(func(c cost) float64 { return c.objects })
	rate, bareRate, share := of(func(c cost) float64 { return c.rate })
	fmt.Fprintf(table, "| %s | %d | %.0f | %.0f | %.2f | %.0f | %.0f | %.0f | %.0f | %.2f | %.2f |\n", name, callers, cpu, bareCPU, more,
		objects, bareObjects, rate, bareRate, share, trips)
}

func middle(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// inTurns runs both and returns what an allocation costs each.
func inTurns(b *testing.B, both [2]advancer, callers int, d time.Duration) (costs [2]cost) {
	b.Helper()
	for i, s := range both {
		var count atomic.Int64
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
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
		costs[i].cpu, costs[i].rate = (selfTime(b)-used).Seconds()*1e6/n, n/time.Since(began).Seconds()
		runtime.ReadMemStats(&after)
		costs[i].objects = float64(after.Mallocs-before.Mallocs) / n
	}
	return costs
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
	if server == "" {
		return 0 // it is a file
	}
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
