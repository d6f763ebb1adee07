package bench_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-id/leaf/bench"
	"github.com/leaf-id/leaf/internal/load"
	"github.com/leaf-id/leaf/internal/testserver"
)

// TestClusterRate takes numbers of tags with strict order, one for each call to the store, from a server
// that is a member of a cluster and from one with etcd's own servers as its store. With LEAF_LAB it logs
// a table of both.
func TestClusterRate(t *testing.T) {
	binary, err := bench.Build(t.Context(), "..", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	run, members := 100*time.Millisecond, []int{1}
	if os.Getenv("LEAF_LAB") != "" {
		run, members = 5*time.Second, []int{1, 3}
	}
	t.Log("\n| store | 1 caller: calls a second | CPU of all servers, µs a call | 32 callers: calls a second | CPU |\n|---|---|---|---|---|")
	t.Setenv("LEAF_SNOWFLAKE_ENABLE", "false") // no worker IDs, whose renewals are writes, too
	for _, n := range members {
		for _, s := range []struct {
			name  string
			start func(t *testing.T, binary string, members int) *bench.Leaf
		}{{"external etcd", startOutside}, {"leaf cluster", startCluster}} {
			name := fmt.Sprintf("%s, members: %d", s.name, n)
			t.Run(name, func(t *testing.T) {
				leaf := s.start(t, binary, n)
				for i := range maxCallers {
					command(t, binary, "tag", "create", benchTag(i), "--order", "strict", "--server", leaf.URL)
				}
				var row strings.Builder
				fmt.Fprintf(&row, "\n| %s", name)
				for _, callers := range []int{1, maxCallers} {
					draw(t, leaf, callers, run/5)
					before, calls := cpuOfServers(t), draw(t, leaf, callers, run)
					fmt.Fprintf(&row, " | %.0f | %.0f", float64(calls)/run.Seconds(), (cpuOfServers(t)-before)*1e6/float64(calls))
				}
				t.Log(row.String() + " |")
			})
		}
	}
}

// startOutside starts a server on etcd's own servers.
func startOutside(t *testing.T, binary string, members int) *bench.Leaf {
	url := startEtcd(t, members)
	command(t, binary, "init", "--store", url)
	return startLeaf(t, binary, "--data", t.TempDir(), "--store", url)
}

// startCluster starts the servers of a cluster, and returns the first one.
func startCluster(t *testing.T, binary string, members int) (first *bench.Leaf) {
	var addrs []string
	for range members {
		port, err := testserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		addrs = append(addrs, fmt.Sprint("127.0.0.1:", port))
	}
	peers := strings.Join(addrs, ",")
	for i, addr := range addrs {
		data := filepath.Join(t.TempDir(), "data")
		if i == 0 {
			command(t, binary, "cluster", "init", addr, "--data", data)
		} else {
			command(t, binary, "cluster", "add", addr, "--cluster", peers)
		}
		s := startLeaf(t, binary, "--data", data, "--cluster", peers, "--cluster-address", addr)
		if first == nil {
			first = s
		}
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		out, _ := exec.Command(binary, "cluster", "status", "--cluster", peers).CombinedOutput() // a member may be busy
		if !strings.Contains(string(out), "learner") {
			return first
		}
		if time.Now().After(deadline) {
			t.Fatalf("not all members have a vote:\n%s", out)
		}
	}
}

func startLeaf(t *testing.T, binary string, args ...string) *bench.Leaf {
	s, err := bench.Start(binary, append([]string{"--listen", "127.0.0.1:0", "--resp", "off"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// command runs the program, again while servers get to know each other.
func command(t *testing.T, binary string, args ...string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		out, err := exec.Command(binary, args...).CombinedOutput()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("leaf %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// draw has callers take numbers one by one, each of a tag of its own, and counts the calls.
func draw(t *testing.T, server *bench.Leaf, callers int, run time.Duration) (calls int64) {
	target := load.Routes(load.Server{Addr: strings.TrimPrefix(server.URL, "http://"), Timeout: 10 * time.Second}, "segment")
	end := time.Now().Add(run)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			conn := target.Open()
			defer conn.Close()
			for time.Now().Before(end) {
				call := load.Call{Key: benchTag(i), Count: 1}
				if conn.Do(t.Context(), []*load.Call{&call}); call.Err != nil {
					t.Error(call.Err)
					return
				}
				atomic.AddInt64(&calls, 1)
			}
		})
	}
	all.Wait()
	return calls
}

// cpuOfServers is the processor time of all processes that this one has started, in seconds.
func cpuOfServers(t *testing.T) float64 {
	all, err := bench.TreeSeconds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	own, err := bench.CPUSeconds(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	return all - own
}
