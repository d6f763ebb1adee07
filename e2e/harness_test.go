package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// javaTable is what Java Leaf's own script creates.
var javaTable = []string{
	`CREATE TABLE leaf_alloc (
		biz_tag varchar(128) NOT NULL DEFAULT '',
		max_id bigint(20) NOT NULL DEFAULT '1',
		step int(11) NOT NULL,
		description varchar(256) DEFAULT NULL,
		update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
		PRIMARY KEY (biz_tag)
	) ENGINE=InnoDB`,
	`INSERT INTO leaf_alloc(biz_tag, max_id, step, description)
		VALUES ('leaf-segment-test', 1, 2000, 'Test leaf Segment Mode Get Id')`,
}

const sampleTag = "leaf-segment-test"

var (
	leafBinary string                    // the command under test, built once
	mariadb    *testserver.MariaDBServer // shared by tests that do not stop it
)

// lab reports whether the full figures are wanted.
func lab() bool { return os.Getenv("LEAF_LAB") != "" }

// figure returns the short form of a figure, or the full one in the lab.
func figure[T any](short, full T) T {
	if lab() {
		return full
	}
	return short
}

func TestMain(m *testing.M) {
	if config := os.Getenv(nodeVariable); config != "" {
		os.Exit(nodeMain(config))
	}
	if config := os.Getenv(programVariable); config != "" {
		os.Exit(programMain(config))
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "leaf-e2e-")
	if err == nil {
		defer os.RemoveAll(dir)
		leafBinary, err = build(dir)
	}
	if err == nil {
		mariadb, err = testserver.StartMariaDB(nil)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer mariadb.Close()
	defer sharedZooKeeper.close()
	return m.Run()
}

// raceFlags returns those of make test-all if these tests run with the race detector, else none.
func raceFlags() []string {
	build, _ := debug.ReadBuildInfo()
	if !slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return nil
	}
	return []string{"-race", "-gcflags=modernc.org/...=-race=false"}
}

// build makes the command.
func build(dir string) (string, error) {
	binary := filepath.Join(dir, "leaf")
	args := append([]string{"build", "-o", binary}, raceFlags()...)
	cmd := exec.Command("go", append(args, "./cmd/leaf")...)
	cmd.Dir = ".." // the product's own module, with its own requirements
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the leaf command: %w\n%s", err, out)
	}
	return binary, nil
}

// command runs the leaf command to its end and returns its output.
func command(t testing.TB, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), leafBinary, args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // the race detector's second at each exit
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// leafCommand is command where that must succeed.
func leafCommand(t testing.TB, args ...string) string {
	t.Helper()
	out, err := command(t, args...)
	if err != nil {
		t.Fatalf("leaf %q: %v\n%s", args, err, out)
	}
	return out
}

// A server is a running `leaf serve`.
type server struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	log    *bytes.Buffer
	logMu  sync.Mutex
	urls   chan string
	exited chan struct{}
	ended  time.Time // valid once exited is closed
}

var servingURL = regexp.MustCompile(`msg=serving.* url=(https?://\S+)`)

// serve starts a server on a free port and returns once it listens. It ends with
// the test.
func serve(t testing.TB, args ...string) *server {
	t.Helper()
	return serveBy(t, append([]string{leafBinary}, serveArgs(args)...)...)
}

// serveWith is serve with one environment variable, written NAME=VALUE.
func serveWith(t testing.TB, variable string, args ...string) *server {
	t.Helper()
	return serveBy(t, append([]string{"env", variable, leafBinary}, serveArgs(args)...)...)
}

func serveArgs(args []string) []string {
	return append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)
}

// idSpace separates the servers of a test from those of others on this machine, also of other runs.
func idSpace(t testing.TB) string { return fmt.Sprint(t.Name(), " ", os.Getpid()) }

// serveBy is serve with a command that becomes the server.
func serveBy(t testing.TB, command ...string) *server {
	t.Helper()
	s := launch(t, command...)
	s.awaitListening()
	return s
}

// launch starts a server and does not wait for it.
func launch(t testing.TB, command ...string) *server {
	t.Helper()
	s := &server{t: t, log: new(bytes.Buffer), urls: make(chan string, 1), exited: make(chan struct{})}
	s.cmd = exec.Command(command[0], command[1:]...)
	s.cmd.Dir = t.TempDir()
	s.cmd.Env = append(os.Environ(), "LEAF_RESP=off", "LEAF_LOG_FORMAT=text", "LEAF_ID_SPACE="+idSpace(t)) // there is one default port, and one machine
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.kill)
	go s.follow(stderr)
	return s
}

func (s *server) awaitListening() {
	s.t.Helper()
	select {
	case s.url = <-s.urls:
	case <-s.exited:
		s.t.Fatalf("leaf serve ended:\n%s", s.output())
	case <-time.After(90 * time.Second):
		s.t.Fatalf("leaf serve does not listen:\n%s", s.output())
	}
}

func (s *server) follow(stderr io.Reader) {
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		s.logMu.Lock()
		fmt.Fprintln(s.log, lines.Text())
		s.logMu.Unlock()
		if m := servingURL.FindStringSubmatch(lines.Text()); m != nil {
			s.urls <- m[1]
		}
	}
	_ = s.cmd.Wait()
	s.ended = time.Now()
	close(s.exited)
}

func (s *server) output() string {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	return s.log.String()
}

// running reports that the server has ended, by itself.
func (s *server) running() error {
	select {
	case <-s.exited:
		return fmt.Errorf("leaf serve ended:\n%s", s.output())
	default:
		return nil
	}
}

// endedBefore reports whether the process was gone by then.
func (s *server) endedBefore(t time.Time) bool {
	select {
	case <-s.exited:
		return s.ended.Before(t)
	default:
		return false
	}
}

// kill ends the server as kill -9 does.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// stop ends the server in good order.
func (s *server) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(30 * time.Second):
		s.t.Fatalf("leaf serve does not stop:\n%s", s.output())
	}
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		s.t.Fatalf("leaf serve ended with %d:\n%s", code, s.output())
	}
}

// client keeps its connections, as a service in production does.
var client = &http.Client{
	Timeout:   20 * time.Second,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256},
}

// minWait is the least time that a test waits for anything: where that comes, waiting costs
// nothing.
const minWait = 30 * time.Second

// until waits for do to succeed.
func until(t testing.TB, limit time.Duration, what string, do func() error) {
	t.Helper()
	limit = max(limit, minWait)
	for deadline := time.Now().Add(limit); ; time.Sleep(10 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not %s after %v: %v", what, limit, err)
		}
	}
}

// get returns the body of an answer with status 200.
func get(url string) (string, error) { return getWith(client, url) }

func getWith(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

// ids asks for n IDs of tag; n = 0 for one by Java Leaf's own route.
func (s *server) ids(tag string, n int) ([]int64, error) {
	url := s.url + "/api/segment/get/" + tag
	if n > 0 {
		url += "?n=" + strconv.Itoa(n)
	}
	body, err := get(url)
	if err != nil {
		return nil, err
	}
	var ids []int64
	for line := range strings.FieldsSeq(body) {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) != max(n, 1) {
		return nil, fmt.Errorf("asked for %d IDs, got %d", n, len(ids))
	}
	return ids, nil
}

// next returns one ID. A busy disk may take longer than a server has its callers wait.
func (s *server) next(tag string) int64 {
	s.t.Helper()
	var ids []int64
	until(s.t, 20*time.Second, "an ID", func() (err error) {
		ids, err = s.ids(tag, 0)
		return err
	})
	return ids[0]
}

// firstIDs returns the first ID of each server, which then has a stock: later calls do not wait for
// its connection to the store.
func firstIDs(servers ...*server) (ids []int64) {
	for _, s := range servers {
		ids = append(ids, s.next(sampleTag))
	}
	return ids
}

// A load is clients that ask without a pause.
type load struct {
	tally
	seen drivertest.IDs
}

// startLoad has each of clients ask whichever server pick returns for n IDs at a
// time, until the load is stopped.
func startLoad(t testing.TB, clients, n int, tag string, pick func(client int) *server) *load {
	l := new(load)
	ctx := l.begin(t)
	for c := range clients {
		shard := l.seen.Shard()
		l.wg.Go(func() {
			for ctx.Err() == nil {
				ids, err := pick(c).ids(tag, n)
				if err != nil {
					l.fail(err)
					time.Sleep(time.Millisecond)
					continue
				}
				shard.Add(ids...)
				l.count.Add(int64(len(ids)))
			}
		})
	}
	return l
}

// A tally sums up the clients that run during the test.
type tally struct {
	count  atomic.Int64 // IDs
	errors atomic.Int64 // failed calls
	first  atomic.Pointer[error]

	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// begin returns the context of the clients, which end with the test at the latest.
func (l *tally) begin(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	t.Cleanup(l.stop)
	return ctx
}

func (l *tally) fail(err error) {
	l.errors.Add(1)
	l.first.CompareAndSwap(nil, &err)
}

func (l *tally) stop() {
	l.cancel()
	l.wg.Wait()
}

// await returns when n IDs have come in.
func (l *tally) await(t testing.TB, n int64) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); l.count.Load() < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d IDs in 5 minutes, want %d (first error: %v)", l.count.Load(), n, l.firstError())
		}
	}
}

func (l *tally) firstError() error {
	if err := l.first.Load(); err != nil {
		return *err
	}
	return nil
}

// check compares every ID with every other one.
func (l *load) check(t testing.TB) {
	t.Helper()
	if err := l.seen.Check(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d IDs, no duplicate; %d failed calls (first: %v)", l.count.Load(), l.errors.Load(), l.firstError())
}

// column reads one number from the sample row of a database.
func column(t testing.TB, database, name string) int64 {
	t.Helper()
	return queryInt(t, database, "SELECT "+name+" FROM leaf_alloc WHERE biz_tag = '"+sampleTag+"'")
}
