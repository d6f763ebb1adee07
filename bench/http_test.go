package bench_test

import (
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// httpRounds is how often each figure is taken, the servers in turn.
const httpRounds = 7

// A webServer answers GET of a path over HTTP.
type webServer struct {
	url string
	pid int
}

// webFigures are those of one server, of several runs.
type webFigures struct {
	rate []float64 // requests a second
	cpu  []float64 // of the server for a request, in µs
	p99  []float64 // ms
}

// BenchmarkHTTP measures GET of an ID beside nginx, which returns a constant, under wrk, and logs
// medians as a table.
func BenchmarkHTTP(b *testing.B) {
	nginx := testserver.Nginx(b, `keepalive_requests 1000000000; server { listen 80; location / { return 200 "1234567890"; } }`)
	leaf := startLeaf(b)
	servers := []webServer{
		{nginx.URL() + "/", nginx.PID()},
		{leaf.url + "/api/segment/get/" + respKey, leaf.pid},
		{leaf.url + "/v1/ids/segment/" + respKey, leaf.pid},
	}
	names := []string{"nginx `return 200`", "Leaf `/api/segment/get/{key}`", "Leaf `/v1/ids/segment/{key}`"}
	of := make([]webFigures, len(servers))
	for range b.N * httpRounds {
		for i, s := range servers {
			s.measure(b, &of[i])
		}
	}
	var table strings.Builder
	table.WriteString("\n| 50 connections | requests a second | CPU per request | beside nginx | p99 |\n|---|---|---|---|---|\n")
	for i, f := range of {
		fmt.Fprintf(&table, "| %s | %.0f | %.2f µs | %.2f | %.2f ms |\n", names[i], median(f.rate), median(f.cpu), median(f.cpu)/median(of[0].cpu), median(f.p99))
	}
	b.ReportMetric(median(of[1].cpu)/median(of[0].cpu), "×CPU")
	b.Log(table.String())
}

var wrkReport = regexp.MustCompile(`(?s)99%\s+([\d.]+)(us|ms|s)\s.*?(\d+) requests in .*Requests/sec:\s+([\d.]+)`)

// measure has wrk ask the server, and takes in what that came to.
func (s webServer) measure(b *testing.B, f *webFigures) {
	before := cpuTime(b, s.pid)
	out, err := exec.CommandContext(b.Context(), "wrk", "-t", "1", "-c", "50", "-d", "3s", "--latency", s.url).Output()
	if err != nil {
		b.Fatalf("wrk (Debian's package of that name): %v\n%s", err, out)
	}
	spent := cpuTime(b, s.pid) - before
	m := wrkReport.FindStringSubmatch(string(out))
	if m == nil || strings.Contains(string(out), "Non-2xx") || strings.Contains(string(out), "Socket errors") {
		b.Fatalf("wrk:\n%s", out)
	}
	f.p99 = append(f.p99, number(b, m[1])*map[string]float64{"us": 0.001, "ms": 1, "s": 1000}[m[2]])
	f.cpu = append(f.cpu, spent*1e6/number(b, m[3]))
	f.rate = append(f.rate, number(b, m[4]))
}
