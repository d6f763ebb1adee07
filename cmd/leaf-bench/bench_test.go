package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/load"
)

// benchServer answers each request by its number, from 1 on.
func benchServer(t *testing.T, answer func(w http.ResponseWriter, n int64)) (url string) {
	t.Helper()
	var n atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, n.Add(1)) }))
	t.Cleanup(srv.Close)
	return srv.URL
}

// count answers with the number.
func count(w http.ResponseWriter, n int64) { fmt.Fprint(w, n) }

func shortBench(url string, args ...string) []string {
	return append([]string{"order", "--protocol", "http", "--server", url, "-d", "500ms", "--warm-up", "0s", "-c", "3"}, args...)
}

// If a server hands an ID out twice, the command fails and names the ID.
func TestBenchFindsDuplicates(t *testing.T) {
	url := benchServer(t, func(w http.ResponseWriter, n int64) {
		if n == 2 { // the first of the load
			n = 1
		}
		count(w, n)
	})
	for _, args := range [][]string{nil, {"-o", "json"}} {
		code, stdout, stderr := benchRun(t.Context(), shortBench(url, args...)...)
		if args == nil {
			if want := regexp.MustCompile(`^leaf-bench: error: 1 of [\d,]+ IDs had been received before, such as 1 of order\n$`); code != 1 || !want.MatchString(stderr) {
				t.Errorf("%d %q", code, stderr)
			}
			if !regexp.MustCompile(`(?m)^duplicates +1 among [\d,]+ IDs`).MatchString(stdout) {
				t.Errorf("%s", stdout)
			}
			url = benchServer(t, func(w http.ResponseWriter, _ int64) { count(w, 7) })
			continue
		}
		var got resultJSON
		if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 1 || got.Check.Duplicates != got.Check.Checked-1 || got.Check.Examples[0] != "7 of order" {
			t.Errorf("%d %v %+v", code, err, got.Check)
		}
	}
}

func TestBenchErrors(t *testing.T) {
	first := func(then http.HandlerFunc) string {
		return benchServer(t, func(w http.ResponseWriter, n int64) {
			if n == 1 {
				count(w, n)
				return
			}
			then(w, nil)
		})
	}
	tests := []struct {
		name           string
		url            string
		stdout, stderr string
	}{
		{"all fail", first(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, `{"message":"no IDs left"}`, http.StatusServiceUnavailable)
		}),
			`(?s)\nrequests    0, 0/s\n.*\nerrors      [\d,]+\n            [\d,]+  HTTP 503: no IDs left\n`, `^leaf-bench: error: no request succeeded\n$`},
		{"the first fails", benchServer(t, func(w http.ResponseWriter, _ int64) { http.Error(w, "unknown tag \x1b[31m", http.StatusNotFound) }), `^$`,
			`^leaf-bench: error: the first request failed: key "order": HTTP 404: unknown tag .*\nleaf-bench: hint: create it with 'leaf tag create'`},
		{"nothing there", "http://127.0.0.1:1", `^$`, `^leaf-bench: error: no server answers at 127\.0\.0\.1:1: .*connection refused\nleaf-bench: hint: start one with 'leaf serve'`},
	}
	for _, tt := range tests {
		code, stdout, stderr := benchRun(t.Context(), shortBench(tt.url)...)
		if code != 1 || !regexp.MustCompile(tt.stdout).MatchString(stdout) || !regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("%s: %d\n%s\n%s", tt.name, code, stdout, stderr)
		}
	}
}

// The shape of -o json: figures are replaced by 0, times by "time".
func TestBenchJSON(t *testing.T) {
	url := benchServer(t, func(w http.ResponseWriter, n int64) {
		if n%10 == 5 {
			http.Error(w, `{"message":"busy"}`, http.StatusTooManyRequests)
			return
		}
		count(w, n)
	})
	code, stdout, stderr := benchRun(t.Context(), shortBench(url, "--rate", "500", "-o", "json")...)
	if code != 0 || stderr != "" {
		t.Fatalf("%d %s", code, stderr)
	}
	var got resultJSON
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.Requests; r.Sent+r.Unsent != 250 || r.Succeeded+r.Failed != r.Sent || r.Asked != 500 || got.Check.Checked != got.IDs.Received+1 {
		t.Errorf("%+v", got)
	}
	shape := strings.ReplaceAll(stdout, url, "URL")
	shape = regexp.MustCompile(`"20\d\d-[^"]+Z"`).ReplaceAllString(shape, `"time"`)
	shape = regexp.MustCompile(`: [\d.]+\b`).ReplaceAllString(shape, ": 0")
	if diff := cmp.Diff(benchShape, shape); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const benchShape = `{
  "server": "URL",
  "protocol": "http",
  "scheme": "segment",
  "keys": [
    "order"
  ],
  "clients": 0,
  "connections": 0,
  "pipeline": 0,
  "ids_per_request": 0,
  "loop": "open",
  "warm_up_s": 0,
  "duration_s": 0,
  "started": "time",
  "finished": "time",
  "interrupted": false,
  "requests": {
    "asked_per_second": 0,
    "achieved_per_second": 0,
    "sent": 0,
    "succeeded": 0,
    "failed": 0,
    "unsent": 0
  },
  "ids": {
    "received": 0,
    "per_second": 0
  },
  "latency_ms": {
    "mean": 0,
    "p50": 0,
    "p90": 0,
    "p99": 0,
    "p99.9": 0,
    "p99.99": 0,
    "max": 0
  },
  "latency_corrected": true,
  "errors": [
    {
      "kind": "HTTP 429",
      "count": 0,
      "example": "busy"
    }
  ],
  "check": {
    "checked": 0,
    "kept": 0,
    "duplicates": 0,
    "examples": [],
    "memory_bytes": 0
  }
}
`

// Ctrl-C ends the run, and the command prints the results so far.
func TestBenchInterrupted(t *testing.T) {
	enough := make(chan struct{})
	url := benchServer(t, func(w http.ResponseWriter, n int64) {
		if n == 100 {
			close(enough)
		}
		count(w, n)
	})
	cmd := exec.Command("leaf-bench", "order", "--protocol", "http", "--server", url, "-d", "1h", "--warm-up", "0s", "-o", "json")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-enough
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	var got resultJSON
	if err := cmd.Wait(); err != nil || json.Unmarshal(stdout.Bytes(), &got) != nil || !got.Interrupted || got.Requests.Succeeded == 0 {
		t.Errorf("%v\n%s\n%s", err, stdout.String(), stderr.String())
	}
}

func TestBenchUsage(t *testing.T) {
	tests := map[string]string{
		"":                                       "TAG is missing",
		"--scheme ticket":                        "TAG is missing",
		"a --tags b,a":                           `"a" is named twice`,
		"a -n 0":                                 "-n 0: it must be from 1 to 1000000",
		"a --rate -1":                            "--rate -1: it must be from 0 to 10000000",
		"a -c 5 --connections 6 --protocol grpc": "--connections 6: it must be from 0 to 5",
		"a --connections 6":                      "--connections is for --protocol grpc alone",
		"a --pipeline 2":                         "--pipeline is for --protocol resp alone",
		"a --protocol ftp":                       `--protocol "ftp": there are http,`,
		"a --scheme ulid":                        `--scheme "ulid": there are segment,`,
		"a -d 0s":                                "it is not above 0",
		"a --warm-up -1s":                        "it is below 0",
		"a --server redis://h:1":                 "is for --protocol resp",
		"a --server redis://h --protocol resp":   "not of the form redis://HOST:PORT",
		"a\tb":                                   "control character",
		"a --server http://127.0.0.1:1/leaf/ -d 100ms": "",
	}
	for line, want := range tests {
		code, stdout, stderr := benchRun(t.Context(), strings.FieldsFunc(line, func(r rune) bool { return r == ' ' })...)
		if want == "" {
			if code != 1 || !strings.Contains(stderr, "has a path") {
				t.Errorf("%s: %d %s", line, code, stderr)
			}
			continue
		}
		if code != 2 || !strings.Contains(stderr, want) || stdout != "" {
			t.Errorf("%s: %d %s", line, code, stderr)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1: "0.00 µs", 1234: "1.23 µs", 56_789: "56.8 µs", 999_900: "1000 µs", time.Millisecond: "1.00 ms",
		123_456 * time.Microsecond: "123 ms", 1050 * time.Millisecond: "1.05 s", time.Hour: "3600 s",
	} {
		if got := short(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestProgressBar(t *testing.T) {
	var out bytes.Buffer
	b := &progressBar{w: &out, warmUp: time.Second, total: 4 * time.Second}
	b.show(load.Progress{Elapsed: 500 * time.Millisecond, WarmUp: true, Requests: 1000})
	b.show(load.Progress{Elapsed: 2 * time.Second, Requests: 4000, Failed: 3})
	b.clear()
	want := "\r\x1b[K[==                  ] 500ms of 4s  2,000 requests/s  0 errors  (warm-up)" +
		"\r\x1b[K[==========          ] 2s of 4s  2,000 requests/s  3 errors\r\x1b[K"
	if out.String() != want {
		t.Errorf("%q", out.String())
	}
	if b := newProgressBar(&out, 0, time.Second, false); b.w != nil {
		t.Error("a bar that is not on a terminal")
	}
}
