package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// sharedStores are those that several servers can share. Those without worker IDs serve
// counters alone.
var sharedStores = []struct {
	name string
	url  func(t testing.TB) (store string, workers bool)
}{
	{"mariadb", func(t testing.TB) (string, bool) { return mariadb.URL(mariadb.NewDatabase(t)), true }},
	{"postgres", func(t testing.TB) (string, bool) {
		s := testserver.Postgres(t, nil)
		return s.URL(s.NewDatabase(t)), true
	}},
	{"etcd", func(t testing.TB) (string, bool) { return testserver.Etcd(t, nil).URL("rolling"), true }},
	{"nats", func(t testing.TB) (string, bool) { return testserver.NATS(t).URL() + "/rolling", true }},
	{"zookeeper", func(t testing.TB) (string, bool) { return "zookeeper://" + testserver.ZooKeeper(t).Addr(), true }},
	{"redis", func(t testing.TB) (string, bool) {
		return testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{{"appendfsync", "always"}}}).URL(), true
	}},
	{"ticket", func(t testing.TB) (string, bool) {
		one, other := mariadb.URL(mariadb.NewDatabase(t)), mariadb.URL(mariadb.NewDatabase(t))
		return "ticket+" + one + "," + strings.TrimPrefix(other, "mysql://"), false
	}},
	{"leaf", func(t testing.TB) (string, bool) {
		upstream := serve(t, "--data", filepath.Join(t.TempDir(), "data"))
		return "leaf://" + strings.TrimPrefix(upstream.url, "http://"), false
	}},
}

// Three servers behind nginx, set up as docs/operations.md says, are restarted one after the
// other under load: no call fails, and no ID comes twice.
func TestRollingRestart(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for _, s := range sharedStores {
		t.Run(s.name, func(t *testing.T) {
			url, workers := s.url(t)
			if s.name != "leaf" {
				initShared(t, url, workers)
			}
			newRolling(t, url, workers).restartAll()
		})
	}
}

func initShared(t testing.TB, url string, workers bool) {
	t.Helper()
	b, err := drivers.Open(url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Tags.Init(t.Context(), segment.Tag{Name: sampleTag, MaxID: 1, Step: 1000}); err != nil {
		t.Fatal(err)
	}
	if workers {
		initWorkers(t, url)
	}
}

// A rolling is three servers behind nginx, under load.
type rolling struct {
	t       testing.TB
	args    [3][]string
	servers [3]*server
	load
}

func newRolling(t testing.TB, url string, workers bool) *rolling {
	r := &rolling{t: t}
	file := config(t, "leaf.yaml", fmt.Sprintf("drain_delay: 500ms\nstart_wait: 1m\nsnowflake: {enable: %v}\n", workers))
	var ports [3]int
	for i := range ports {
		ports[i] = freePort(t)
		r.args[i] = []string{leafBinary, "serve", "--config", file, "--store", url, "--listen", fmt.Sprintf("127.0.0.1:%d", ports[i]),
			"--data", filepath.Join(t.TempDir(), "data")}
		if strings.HasPrefix(url, "nats:") { // it is not stopped, so claims need not wait
			r.args[i] = append(r.args[i], "--workers", url+"?claim_delay=0")
		}
		r.start(i)
	}
	nginx := testserver.Nginx(t, rollingRecipe(t, ports))
	ctx := r.begin(t)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	paths := []string{"/v1/ids/segment/" + sampleTag + "?format=text", "/api/segment/get/" + sampleTag}
	if workers {
		paths = append(paths, "/v1/ids/snowflake/x?format=text", "/api/snowflake/get/x")
	}
	for _, path := range paths {
		for range 3 {
			r.ask(ctx, client, nginx.URL()+path)
		}
	}
	return r
}

// start starts a server, and returns when it is ready.
func (r *rolling) start(i int) {
	r.t.Helper()
	r.servers[i] = serveBy(r.t, r.args[i]...)
	until(r.t, time.Minute, "ready", func() error {
		_, err := get(r.servers[i].url + "/readyz")
		return err
	})
}

func (r *rolling) restartAll() {
	r.t.Helper()
	r.await(r.t, 200)
	for range figure(1, 3) {
		for i := range r.servers {
			r.servers[i].stop()
			r.start(i)
			r.await(r.t, r.count.Load()+figure[int64](200, 2000))
		}
	}
	r.load.stop()
	r.check(r.t)
	if n := r.errors.Load(); n != 0 {
		r.t.Errorf("%d failed calls", n)
		for _, s := range r.servers {
			r.t.Log(s.output())
		}
	}
}

// rollingRecipe returns what docs/operations.md has people write into nginx.conf, for servers on
// ports of this machine.
func rollingRecipe(t testing.TB, ports [3]int) string {
	t.Helper()
	page, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(page)
	if m == nil {
		t.Fatal("docs/operations.md has no recipe for nginx")
	}
	recipe := string(m[1])
	for i, port := range ports {
		recipe = strings.Replace(recipe, fmt.Sprintf("server 10.0.0.%d:8080", i+1), fmt.Sprintf("server 127.0.0.1:%d", port), 1)
	}
	if strings.Contains(recipe, "10.0.0.") {
		t.Fatalf("the recipe is for other servers:\n%s", recipe)
	}
	return recipe
}
