package bench_test

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// respRounds is how often each figure is taken, the two servers in turn.
const respRounds = 7

// respKey is a tag that a new server has, and a key that a Redis makes.
const respKey = "leaf-segment-test"

// A respServer speaks the Redis protocol.
type respServer struct {
	host, port string
	pid        int
}

// respFigures are those of one server, of several runs.
type respFigures struct {
	rate []float64 // commands a second
	cpu  []float64 // of the server for a command, in µs
	p99  []float64 // ms
}

// BenchmarkRESP measures INCR beside a real Redis under redis-benchmark, and logs medians
// as a table.
func BenchmarkRESP(b *testing.B) {
	redis := newRESPServer(b, testserver.Redis(b, &testserver.RedisOptions{Config: [][2]string{{"appendonly", "no"}}}).Addr())
	leaf := newRESPServer(b, startLeaf(b).resp)
	var table strings.Builder
	table.WriteString("\n| 50 connections | Redis: INCR a second | Leaf | ratio | Redis: CPU per INCR | Leaf | ratio | Redis: p99 | Leaf |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, pipeline := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("P", pipeline), func(b *testing.B) {
			var of [2]respFigures
			for range b.N * respRounds {
				for i, s := range []respServer{redis, leaf} {
					s.measure(b, pipeline, &of[i])
				}
			}
			r, l := of[0], of[1]
			fmt.Fprintf(&table, "| -P %d | %.0f | %.0f | %.2f | %.3f µs | %.3f µs | %.2f | %.2f ms | %.2f ms |\n", pipeline,
				median(r.rate), median(l.rate), median(l.rate)/median(r.rate), median(r.cpu), median(l.cpu), median(l.cpu)/median(r.cpu),
				median(r.p99), median(l.p99))
			b.ReportMetric(median(l.rate)/median(r.rate), "×rate")
			b.ReportMetric(median(l.cpu)/median(r.cpu), "×CPU")
		})
	}
	b.Log(table.String())
}

func median(figures []float64) float64 {
	slices.Sort(figures)
	return figures[len(figures)/2]
}

// measure has redis-benchmark ask the server, and takes in what that came to.
func (s respServer) measure(b *testing.B, pipeline int, f *respFigures) {
	n := 150_000 * min(pipeline, 24)
	before := cpuTime(b, s.pid)
	out, err := exec.CommandContext(b.Context(), "redis-benchmark", "-h", s.host, "-p", s.port, "-c", "50", "--csv",
		"-n", strconv.Itoa(n), "-P", strconv.Itoa(pipeline), "INCR", respKey).Output()
	if err != nil {
		b.Fatalf("redis-benchmark (Debian's redis-tools): %v\n%s", err, out)
	}
	spent := cpuTime(b, s.pid) - before
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[1]) < 7 {
		b.Fatalf("redis-benchmark: %v\n%s", err, out)
	}
	f.rate = append(f.rate, number(b, rows[1][1]))
	f.p99 = append(f.p99, number(b, rows[1][6]))
	f.cpu = append(f.cpu, spent*1e6/float64(n))
}

func number(b *testing.B, text string) float64 {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// cpuTime is how many seconds of CPU a process has used. The kernel counts hundredths.
func cpuTime(b *testing.B, pid int) float64 {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // after the name, which may hold anything but this
	fields := strings.Fields(rest)
	return (number(b, fields[11]) + number(b, fields[12])) / 100 // utime, stime
}

// newRESPServer asks the server at addr for its process.
func newRESPServer(b *testing.B, addr string) respServer {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	out, err := exec.CommandContext(b.Context(), "redis-cli", "-h", host, "-p", port, "INFO", "server").Output()
	if err != nil {
		b.Fatal(err)
	}
	m := regexp.MustCompile(`process_id:(\d+)`).FindSubmatch(out)
	if m == nil {
		b.Fatalf("no process_id in\n%s", out)
	}
	pid, err := strconv.Atoi(string(m[1]))
	if err != nil {
		b.Fatal(err)
	}
	return respServer{host, port, pid}
}

// A leafServer is a Leaf of its own.
type leafServer struct {
	url  string // of HTTP
	resp string // the address of the Redis protocol
	pid  int
}

// startLeaf builds and starts a server.
func startLeaf(b *testing.B) leafServer {
	dir := b.TempDir()
	binary := filepath.Join(dir, "leaf")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", binary, "./cmd/leaf")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build leaf: %v\n%s", err, out)
	}
	cmd := exec.Command(binary, "serve", "--listen", "127.0.0.1:0", "--resp", "127.0.0.1:0", "--data", filepath.Join(dir, "data"))
	cmd.Env = append(os.Environ(), "LEAF_LOG_FORMAT=text")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s, err := serving(bufio.NewScanner(stderr))
	if err != nil {
		b.Fatal(err)
	}
	s.pid = cmd.Process.Pid
	return s
}

// serving reads the log until the server serves, and then goes on reading it.
func serving(log *bufio.Scanner) (s leafServer, err error) {
	line := regexp.MustCompile(`msg=serving.* url=(\S+).* resp=(\S+)`)
	var text strings.Builder
	for log.Scan() {
		if m := line.FindStringSubmatch(log.Text()); m != nil {
			go func() {
				for log.Scan() {
				}
			}()
			return leafServer{url: m[1], resp: m[2]}, nil
		}
		fmt.Fprintln(&text, log.Text())
	}
	return s, errors.New("leaf serve ended:\n" + text.String())
}
