package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	leafbackend "github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

const (
	rulesFile     = "../deploy/prometheus/rules.yaml"
	rulesTestFile = "../deploy/prometheus/rules_test.yaml"
)

func readText(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	rangeOf  = regexp.MustCompile(`\[\d+[smh]\]`)
	holdFor  = regexp.MustCompile(`(?m)^    for: .*$`)
	alertOf  = regexp.MustCompile(`(?m)^  - alert: (\w+)$`)
	testedOf = regexp.MustCompile(`alertname: (\w+)`)
)

// hastyRules are the rules with their times so short that a test can wait for them.
func hastyRules(t testing.TB) string {
	text := rangeOf.ReplaceAllString(readText(t, rulesFile), "[15s]")
	text = strings.ReplaceAll(text, "process_start_time_seconds < 3600", "process_start_time_seconds < 15")
	return holdFor.ReplaceAllString(text, "    for: 2s")
}

// A watcher is a Prometheus with the rules, and the servers that it scrapes.
type watcher struct {
	*testserver.PrometheusServer
	t testing.TB
}

func watch(t testing.TB, servers ...*server) *watcher {
	t.Helper()
	w := &watcher{testserver.Prometheus(t, hastyRules(t)), t}
	var targets []testserver.PrometheusTarget
	for _, s := range servers {
		u, err := url.Parse(s.url)
		if err != nil {
			t.Fatal(err)
		}
		targets = append(targets, testserver.PrometheusTarget{Addr: u.Host, Scheme: u.Scheme})
	}
	w.Scrape(t, targets...)
	until(t, 30*time.Second, "scraped", func() error { return w.has(fmt.Sprintf(`count(up{job="leaf"} == 1) == %d`, len(servers)), true) })
	return w
}

// has returns an error unless expr has results, or, with want false, has no results.
func (w *watcher) has(expr string, want bool) error {
	samples, err := w.Query(expr)
	if err == nil && (len(samples) > 0) != want {
		err = fmt.Errorf("%s: %v", expr, samples)
	}
	return err
}

func firing(alert string) string {
	return fmt.Sprintf(`ALERTS{alertname=%q,alertstate="firing"}`, alert)
}

// await waits until all alerts fire, or all are silent.
func (w *watcher) await(alerts []string, fire bool) {
	w.t.Helper()
	what := map[bool]string{true: "firing", false: "cleared"}[fire]
	for _, alert := range alerts {
		until(w.t, 2*time.Minute, alert+" "+what, func() error { return w.has(firing(alert), fire) })
	}
}

// A fault is a way to break a server, and what must be told of it.
type fault struct {
	name   string
	alerts []string

	// start returns the server, and what breaks and mends it; no breakIt: it is broken already.
	start func(*testing.T) (s *server, breakIt, mend func())
}

// Each alert fires when its fault is there, and clears after it.
func TestAlerts(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s, breakIt, mend := f.start(t)
			t.Cleanup(func() {
				if t.Failed() {
					t.Log(s.output())
				}
			})
			w := watch(t, s)
			if breakIt != nil {
				w.await(f.alerts, false)
				breakIt()
			}
			w.await(f.alerts, true)
			mend()
			w.await(f.alerts, false)
		})
	}
}

var faults = []fault{
	{"frozen server", []string{"LeafDown"}, frozenServer},
	{"frozen store", []string{"LeafStoreFailing", "LeafStockLow", "LeafExhausted", "LeafErrors", "LeafLatencyHigh", "LeafNotReady", "LeafStoreSlow"}, frozenStore},
	{"counter moved back", []string{"LeafRegression"}, counterMovedBack},
	{"frozen registry", []string{"LeafRegistryFailing", "LeafHorizonNear"}, frozenRegistry},
	{"registry away at the start", []string{"LeafNoWorkerID"}, registryAwayAtStart},
	{"worker ID freed", []string{"LeafWorkerIDLost"}, workerIDFreed},
	{"registry moved back", []string{"LeafRegistryLostWrites"}, registryMovedBack},
	{"short certificate", []string{"LeafCertificateExpiring"}, shortCertificate},
	{"too many connections", []string{"LeafConnectionsRefused"}, tooManyConnections},
}

// must returns what fails the test if do fails.
func must(t *testing.T, do func() error) func() {
	return func() {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
}

func frozenServer(t *testing.T) (s *server, breakIt, mend func()) {
	s = serve(t)
	return s, must(t, func() error { return s.cmd.Process.Signal(syscall.SIGSTOP) }), must(t, func() error { return s.cmd.Process.Signal(syscall.SIGCONT) })
}

// frozenStore freezes the database and takes the server's stock, while one client keeps asking for
// IDs, and others ask for IDs of tags without a stock.
func frozenStore(t *testing.T) (s *server, breakIt, mend func()) {
	db := testserver.MariaDB(t, nil)
	name := db.NewDatabase(t)
	db.Exec(t, name, append(javaTable, "INSERT INTO leaf_alloc(biz_tag, step) VALUES ('a', 10), ('b', 10), ('c', 10)")...)
	s = serveWith(t, "LEAF_SEGMENT_MAX_STOCK=1000000000", "--store", db.URL(name))
	l := startLoad(t, 1, 0, sampleTag, func(int) *server { time.Sleep(50 * time.Millisecond); return s }) // a step lasts 100 s
	t.Cleanup(l.stop)
	l.await(t, 50)
	freeze := must(t, db.Pause)
	return s, func() {
		stock := s.stock(sampleTag)
		freeze()
		// One call takes nearly all, and the client the rest. Several large calls in a row would look
		// like a rise of demand, for which the stock stays low for minutes.
		for n := stock - 20; n > 0; n -= 20 {
			if _, err := s.ids(sampleTag, int(n)); err == nil {
				break
			}
		}
		for _, tag := range []string{"a", "b", "c"} {
			if _, err := get(s.url + "/v1/ids/segment/" + tag); err == nil {
				t.Errorf("an ID of %s from a store that is frozen", tag)
			}
		}
	}, must(t, db.Resume)
}

func counterMovedBack(t *testing.T) (s *server, breakIt, mend func()) {
	database := mariadb.NewDatabase(t)
	mariadb.Exec(t, database, javaTable...)
	s = serveWith(t, "LEAF_SEGMENT_MAX_STOCK=5000", "--store", mariadb.URL(database))
	s.next(sampleTag)
	return s, func() {
		mariadb.Exec(t, database, "UPDATE leaf_alloc SET max_id = 1")
		for range 20 { // more than it holds in memory
			until(t, time.Minute, "an answer", func() error { _, err := s.ids(sampleTag, 500); return err })
		}
	}, func() {}
}

// newWorkers returns a database of the test's own with the table of worker IDs.
func newWorkers(t *testing.T) (db *testserver.MariaDBServer, url, database string) {
	db = testserver.MariaDB(t, nil)
	database = db.NewDatabase(t)
	initWorkers(t, db.URL(database))
	return db, db.URL(database), database
}

// serveWorkers starts a server that leases its worker ID from there, until ten minutes and a
// little from now.
func serveWorkers(t *testing.T, url string) *server {
	return serveWith(t, "LEAF_SNOWFLAKE_HORIZON=620s", "--workers", url)
}

func awaitWorker(t *testing.T, s *server) {
	until(t, 60*time.Second, "an ID", func() error { _, err := get(s.url + "/api/snowflake/get/k"); return err })
}

func frozenRegistry(t *testing.T) (s *server, breakIt, mend func()) {
	db, url, _ := newWorkers(t)
	s = serveWorkers(t, url)
	awaitWorker(t, s)
	return s, must(t, db.Pause), must(t, db.Resume)
}

func registryAwayAtStart(t *testing.T) (s *server, breakIt, mend func()) {
	db, url, _ := newWorkers(t)
	must(t, db.Pause)()
	s = serveWorkers(t, url)
	return s, nil, must(t, db.Resume)
}

// workerIDFreed frees the worker ID as an operator does who takes the server for dead.
func workerIDFreed(t *testing.T) (s *server, breakIt, mend func()) {
	_, url, _ := newWorkers(t)
	s = serveWorkers(t, url)
	awaitWorker(t, s)
	return s, func() {
		backend, err := drivers.Open(url, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer backend.Close()
		registry, err := backend.Registry(new(leafbackend.RegistryOptions))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := worker.Free(t.Context(), registry, 0); err != nil {
			t.Fatal(err)
		}
	}, func() {}
}

func registryMovedBack(t *testing.T) (s *server, breakIt, mend func()) {
	db, url, database := newWorkers(t)
	s = serveWorkers(t, url)
	awaitWorker(t, s)
	return s, func() { db.Exec(t, database, "DELETE FROM leaf_worker") }, func() {}
}

func shortCertificate(t *testing.T) (s *server, breakIt, mend func()) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	renew := func(left time.Duration) func() { return func() { writeCertificate(t, cert, key, left) } }
	renew(90 * 24 * time.Hour)()
	s = serveBy(t, append([]string{"env", "LEAF_TLS_CERT=" + cert, "LEAF_TLS_KEY=" + key, leafBinary}, serveArgs(nil)...)...)
	return s, renew(13 * 24 * time.Hour), renew(90 * 24 * time.Hour)
}

// writeCertificate writes a certificate with the given life, and its key.
func writeCertificate(t *testing.T, cert, key string, left time.Duration) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leaf test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(left), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	public, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{key: {Type: "PRIVATE KEY", Bytes: secret}, cert: {Type: "CERTIFICATE", Bytes: public}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func tooManyConnections(t *testing.T) (s *server, breakIt, mend func()) {
	s = serveWith(t, "LEAF_LIMITS_CONNECTIONS=5")
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var all []net.Conn
	return s, func() {
			for range 10 {
				c, err := net.Dial("tcp", u.Host)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, c)
			}
		}, func() {
			for _, c := range all {
				_ = c.Close()
			}
		}
}

// The rules are valid, and fire as promtool's own tests of them say. Each alert is tested there
// or with a real fault.
func TestRules(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"check", "rules", rulesFile}, {"test", "rules", rulesTestFile}} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %q: %v\n%s", args, err, out)
		}
	}
	var tested []string
	for _, f := range faults {
		tested = append(tested, f.alerts...)
	}
	for _, m := range testedOf.FindAllStringSubmatch(readText(t, rulesTestFile), -1) {
		tested = append(tested, m[1])
	}
	alerts := alertOf.FindAllStringSubmatch(readText(t, rulesFile), -1)
	if len(alerts) < 15 {
		t.Fatalf("%d alerts", len(alerts))
	}
	for _, m := range alerts {
		if !slices.Contains(tested, m[1]) {
			t.Errorf("nothing tests the alert %s", m[1])
		}
	}
	var critical []string
	for alert := range strings.SplitSeq(readText(t, rulesFile), "  - alert: ") {
		if name, rule, _ := strings.Cut(alert, "\n"); strings.Contains(rule, "{severity: critical}") {
			critical = append(critical, "`"+name+"`")
		}
	}
	last := len(critical) - 1
	want := strings.Join(critical[:last], ", ") + " and " + critical[last] + "."
	if text := strings.Join(strings.Fields(readText(t, "../docs/operations.md")), " "); !strings.Contains(text, "is `critical`: "+want) {
		t.Errorf("docs/operations.md does not say that these wake somebody: %s", want)
	}
}
