package server_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/health"
	"github.com/leaf-id/leaf/internal/server"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// A supplied registry deals worker IDs for single use.
type supplied struct{ *registry }

func (supplied) Assign(context.Context, int64) (int64, error)        { return 3, nil }
func (supplied) Discard(int64)                                       {}
func (supplied) Supply() worker.Supply                               { return worker.Supply{Used: 4, Max: 1023} }
func (supplied) Starts(context.Context, int) ([]worker.Start, error) { return nil, nil }

// A memberDB is also a member of a cluster.
type memberDB struct{ io.Closer }

func (memberDB) Stats() health.Cluster {
	return health.Cluster{HasLeader: true, Changes: 2, HandOvers: 5, Short: true, Database: 4096, Syncs: 3, SyncSeconds: 0.5, SyncBuckets: map[float64]uint64{0.1: 2, 0.2: 2}}
}

func (memberDB) Failure() (restart bool, err error) { return false, nil }

// runWithAll runs a server with every part with metrics.
func runWithAll(t *testing.T) (e *encrypted, get func(path string) (int, string)) {
	t.Helper()
	e = runTLS(t, func(o *server.Options) {
		withRESP(o)
		timeBased(o, supplied{newRegistry()})
		o.Store.Name = "mysql://db/leaf"
		o.Store.DB = memberDB{o.Store.DB}
	})
	client := e.trusting(t, false, new(tls.Config))
	get = func(path string) (int, string) {
		t.Helper()
		res, err := client.Get("https://" + e.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	until(t, "ready", func() bool { status, _ := get("/readyz"); return status == http.StatusOK })
	return e, get
}

// value returns the value of a series, written as in the exposition.
func value(t *testing.T, metrics, series string) string {
	t.Helper()
	for line := range strings.Lines(metrics) {
		if v, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	t.Errorf("there is no %s", series)
	return ""
}

func TestRequestsAreCounted(t *testing.T) {
	e, get := runWithAll(t)
	for path, n := range map[string]int{"/api/segment/get/order": 3, "/api/segment/get/none": 2, "/api/snowflake/get/order": 1, "/v1/ids/segment/order?n=2": 4, "/v1/ids/segment/none": 1, "/v1/ids/segment/order?n=x": 2} {
		for range n {
			get(path)
		}
	}
	client := e.trusting(t, false, new(tls.Config))
	for _, key := range []string{"order", "order", "none"} {
		res, err := client.Post("https://"+e.addr+"/leaf.v1.LeafService/Next", "application/json", strings.NewReader(`{"key":"`+key+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	conn, err := tls.Dial("tcp", e.resp, &tls.Config{RootCAs: e.root.pool()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	lines := bufio.NewReader(conn)
	for _, command := range []string{"PING", "INCR order", "INCR none", "NONSENSE"} {
		fmt.Fprintf(conn, "%s\r\n", command)
		if _, err := lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		`leaf_request_duration_seconds_count{front_end="http"}`:                "6",
		`leaf_request_errors_total{cause="UNKNOWN_TAG",front_end="http"}`:      "2",
		`leaf_request_errors_total{cause="EXHAUSTED",front_end="http"}`:        "0",
		`leaf_request_duration_seconds_count{front_end="v1"}`:                  "7",
		`leaf_request_errors_total{cause="UNKNOWN_TAG",front_end="v1"}`:        "1",
		`leaf_request_errors_total{cause="INVALID_ARGUMENT",front_end="v1"}`:   "2",
		`leaf_request_duration_seconds_count{front_end="grpc"}`:                "3",
		`leaf_request_errors_total{cause="UNKNOWN_TAG",front_end="grpc"}`:      "1",
		`leaf_request_errors_total{cause="UNKNOWN_TAG",front_end="resp"}`:      "1",
		`leaf_request_errors_total{cause="INVALID_ARGUMENT",front_end="resp"}`: "1",
		`leaf_tag_ids_issued_total{tag="order"}`:                               "14",
		`leaf_segment_ids_issued_total`:                                        "14",
		`leaf_layout_ids_issued_total{layout="leaf",scheme="snowflake"}`:       "1",
		`leaf_connections{port="resp"}`:                                        "1",
		`leaf_ready{scheme="segment"}`:                                         "1",
		`leaf_ready{scheme="snowflake"}`:                                       "1",
		`leaf_store_up`:                                                        "1",
		`leaf_store_call_errors_total{cause="TIMEOUT"}`:                        "0",
		`leaf_cluster_has_leader`:                                              "1",
		`leaf_cluster_is_leader`:                                               "0",
		`leaf_cluster_leader_changes_total`:                                    "2",
		`leaf_cluster_handovers_total`:                                         "5",
		`leaf_cluster_quota_short`:                                             "1",
		`leaf_cluster_database_bytes`:                                          "4096",
		`leaf_cluster_sync_duration_seconds_bucket{le="0.1"}`:                  "2",
		`leaf_cluster_sync_duration_seconds_bucket{le="+Inf"}`:                 "3",
		`leaf_worker_held`:                                                     "1",
		`leaf_worker_id`:                                                       "3",
		`leaf_worker_term`:                                                     "1",
		`leaf_worker_starts_left`:                                              "1019",
		`leaf_request_duration_seconds_bucket{front_end="grpc",le="+Inf"}`:     "3",
	}
	until(t, "the last command is counted", func() bool { // after it was answered
		_, metrics := get("/metrics")
		return value(t, metrics, `leaf_request_duration_seconds_count{front_end="resp"}`) == "4"
	})
	_, metrics := get("/metrics")
	for series, want := range want {
		if got := value(t, metrics, series); got != want {
			t.Errorf("%s: %s, want %s", series, got, want)
		}
	}
	if strings.Contains(metrics, "mysql") || strings.Contains(metrics, `"none"`) {
		t.Error("the metrics name the store, or a tag that there is not")
	}
}

var (
	helpLine = regexp.MustCompile(`(?m)^# HELP (leaf_\w+) (.*)\n# TYPE \w+ (\w+)\n(.*)`)
	label    = regexp.MustCompile(`(\w+)="`)
)

const metricsPage = "../../docs/metrics.md"

// The table of docs/metrics.md has all metrics of a server with every part.
func TestMetricsAreDocumented(t *testing.T) {
	_, get := runWithAll(t)
	get("/api/segment/get/order")
	_, metrics := get("/metrics")
	var exposed []string
	for _, m := range helpLine.FindAllStringSubmatch(metrics, -1) {
		var labels []string
		for _, l := range label.FindAllStringSubmatch(m[4], -1) {
			if l[1] != "le" {
				labels = append(labels, "`"+l[1]+"`")
			}
		}
		exposed = append(exposed, fmt.Sprintf("| `%s` | %s | %s | %s |", m[1], m[3], strings.Join(labels, ", "), m[2]))
	}
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	isRow := func(line string) bool { return strings.HasPrefix(line, "| `leaf_") }
	lines := strings.Split(string(page), "\n")
	first := slices.IndexFunc(lines, isRow)
	lines = slices.Insert(slices.DeleteFunc(lines, isRow), first, exposed...)
	testserver.Page(t, metricsPage, strings.Join(lines, "\n"))
}

// The API shows every tag in use, with or without series.
func TestAllTagsThroughTheAPI(t *testing.T) {
	r := run(t, nil, nil)
	const tags = 700
	for i := range tags {
		if err := r.store.Create(t.Context(), segment.Tag{Name: fmt.Sprintf("t%d", i), MaxID: 1, Step: 10}); err != nil {
			t.Fatal(err)
		}
		r.want(t, fmt.Sprintf("/api/segment/get/t%d", i), http.StatusOK, "1")
	}
	_, metrics, err := r.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(metrics, "\nleaf_tag_stock{"); n != 500 {
		t.Errorf("%d tags have series", n)
	}
	if got := value(t, metrics, "leaf_segment_tags"); got != fmt.Sprint(tags) {
		t.Errorf("%s tags in use", got)
	}
	for _, call := range []string{"Status", "ListTags"} {
		res, err := r.client.Post("http://"+r.addr+"/leaf.v1.AdminService/"+call, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if n := strings.Count(string(body), `"t`); err != nil || n < tags {
			t.Errorf("%s: %d tags, %v", call, n, err)
		}
	}
}
