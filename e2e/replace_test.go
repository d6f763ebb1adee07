package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// nginxRecipe returns the nginx.conf of the migration guide, for servers on ports of this machine.
func nginxRecipe(t testing.TB, ports [2]int) string {
	t.Helper()
	guide, err := os.ReadFile("../docs/migrating-from-java-leaf.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("(?s)```nginx\n(.*?)```").FindSubmatch(guide)
	if m == nil {
		t.Fatal("the migration guide has no recipe for nginx")
	}
	recipe := string(m[1])
	for i, port := range ports {
		host := fmt.Sprintf("server 10.0.0.%d:8080", i+1)
		if strings.Count(recipe, host) != 1 {
			t.Fatalf("the recipe does not name %q once", host)
		}
		recipe = strings.Replace(recipe, host, fmt.Sprintf("server 127.0.0.1:%d", port), 1)
	}
	return recipe
}

// A replacement is a fleet of two servers behind nginx, under load.
type replacement struct {
	t        testing.TB
	tree     *tree
	database string
	ports    [2]int
	java     [2]*javaServer
	ours     [2]*server
	data     [2]string
	load
}

// startReplacement starts two servers of Java Leaf behind nginx, and clients that ask for
// one ID after the other, of both schemes.
func startReplacement(t testing.TB, recipe func(t testing.TB, ports [2]int) string) *replacement {
	t.Helper()
	r := &replacement{t: t, tree: newTree(t, sharedZooKeeper.get(t)), database: mariadb.NewDatabase(t)}
	mariadb.Exec(t, r.database, javaTable...)
	startJavaNode(t, r.tree, "192.0.2.9", "1", nil).stop() // it makes the tree, and has worker 0
	for i := range r.ports {
		r.ports[i], r.data[i] = freePort(t), filepath.Join(t.TempDir(), "data")
		r.java[i] = startJavaServer(t, r.tree, r.database, r.ports[i])
	}
	nginx := testserver.Nginx(t, recipe(t, r.ports))
	ctx := r.begin(t)
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	for _, path := range []string{"/api/segment/get/" + sampleTag, "/api/snowflake/get/x"} {
		for range 4 {
			r.ask(ctx, client, nginx.URL()+path)
		}
	}
	r.await(t, 500)
	return r
}

// ask has a client ask until ctx ends: each answer is 200 and a number, or has failed.
func (l *load) ask(ctx context.Context, client *http.Client, url string) {
	shard := l.seen.Shard()
	l.wg.Go(func() {
		pace := time.NewTicker(4 * time.Millisecond) // a small load for the machine
		defer pace.Stop()
		for ; ctx.Err() == nil; <-pace.C {
			body, err := getWith(client, url)
			var id int64
			if err == nil {
				id, err = strconv.ParseInt(strings.TrimSpace(body), 10, 64)
			}
			if err != nil {
				l.fail(err)
				continue
			}
			shard.Add(id)
			l.count.Add(1)
		}
	})
}

func freePort(t testing.TB) int {
	t.Helper()
	port, err := testserver.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// toOurs stops a server of Java Leaf and starts one of ours in its place, with its
// leaf.properties.
func (r *replacement) toOurs(i int) {
	r.t.Helper()
	_, address, _ := strings.Cut(mariadb.URL(r.database), "@")
	file := config(r.t, "leaf.properties", fmt.Sprintf("leaf.name=%s\nleaf.segment.enable=true\nleaf.jdbc.url=jdbc:mysql://%s?useSSL=false\n"+
		"leaf.jdbc.username=root\nleaf.snowflake.enable=true\nleaf.snowflake.zk.address=%s%s\nleaf.snowflake.port=%d\n",
		leafName, address, r.tree.addr, r.tree.chroot, r.ports[i]))
	r.java[i].stop()
	r.ours[i] = serveBy(r.t, leafBinary, "serve", "--config", file, "--data", r.data[i], "--listen", fmt.Sprintf("127.0.0.1:%d", r.ports[i]),
		"--workers", r.tree.leaf(ourIP, r.ports[i]))
	r.goOn()
}

// toJava goes back.
func (r *replacement) toJava(i int) {
	r.t.Helper()
	r.ours[i].stop()
	r.java[i] = startJavaServer(r.t, r.tree, r.database, r.ports[i])
	r.goOn()
}

// goOn has the clients ask on for a while.
func (r *replacement) goOn() {
	r.t.Helper()
	r.await(r.t, r.count.Load()+figure[int64](2000, 20_000))
}

func (r *replacement) finish() {
	r.t.Helper()
	r.load.stop()
	r.check(r.t)
	if n := r.errors.Load(); n != 0 {
		r.t.Errorf("%d failed calls", n)
	}
}

// A fleet of Java Leaf behind nginx, set up as the migration guide says, is replaced by
// ours server by server, in place, and goes back, under load: no call fails, and no ID
// comes twice.
func TestReplaceJavaLeafBehindNginx(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	r := startReplacement(t, nginxRecipe)
	for i := range r.ports {
		r.toOurs(i)
	}
	for _, s := range r.ours { // only they can answer the present calls
		if text := s.readiness(); !strings.HasPrefix(text, "ok") {
			t.Errorf("/readyz: %s", text)
		}
	}
	r.goOn()
	for i := range r.ports {
		r.toJava(i)
	}
	for i, j := range r.java {
		if j.count() == 0 {
			t.Errorf("the Java server %d answered nothing", i)
		}
	}
	r.goOn()
	r.finish()
}

// A proxy that takes every answer for one sends no request too early either: the port
// opens when the worker ID is there, as Java Leaf's does.
func TestReplaceJavaLeafBehindPlainProxy(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	r := startReplacement(t, func(t testing.TB, ports [2]int) string {
		return strings.Replace(nginxRecipe(t, ports), "http_500", "", 1)
	})
	r.toOurs(0)
	r.finish()
}
