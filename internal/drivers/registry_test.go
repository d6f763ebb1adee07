package drivers_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/hint"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

// lock opens files of a directory, unlocked.
func lock(dir string) func(string) (*os.File, error) {
	return func(name string) (*os.File, error) {
		return os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_RDWR, 0o600)
	}
}

// registryRoundTrip creates the registry at url and writes a record through a second
// URL of the same.
func registryRoundTrip(t *testing.T, url, again string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	registry := openRegistry(t, url, &drivers.RegistryOptions{Port: 8080})
	if ok, err := registryExists(ctx, url); err != nil || ok {
		t.Fatalf("RegistryExists before: %v, %v", ok, err)
	}
	if _, err := registry.Load(ctx, 3); !errors.Is(err, worker.ErrNotCreated) {
		t.Errorf("Load before: %v, want ErrNotCreated", err)
	}
	if err := initRegistry(ctx, url); err != nil {
		t.Fatal(err)
	}
	if err := initRegistry(ctx, again); !errors.Is(err, fs.ErrExist) {
		t.Errorf("InitRegistry again: %v, want ErrExist", err)
	}
	if ok, err := registryExists(ctx, again); err != nil || !ok {
		t.Errorf("RegistryExists after: %v, %v", ok, err)
	}
	record := worker.Record{Worker: 3, Instance: worker.NewInstance(), Term: 1, Horizon: time.UnixMilli(77)}
	if _, err := registry.Swap(ctx, worker.Record{Worker: 3}, record); err != nil {
		t.Fatal(err)
	}
	other := openRegistry(t, again, nil)
	if got, err := other.Load(ctx, 3); err != nil || !got.Equal(record) {
		t.Errorf("Load through the other URL: %+v, %v", got, err)
	}
	keys := [2]string{}
	for i, u := range []string{url, again} {
		key, err := keyOf(u)
		if err != nil {
			t.Fatal(err)
		}
		keys[i] = key
	}
	if keys[0] != keys[1] || strings.Contains(keys[0], "secret") {
		t.Errorf("keys %q", keys)
	}
}

func TestSQLiteRegistry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ids.db")
	if err := initStore(t.Context(), "sqlite:"+file); err != nil {
		t.Fatal(err)
	}
	registryRoundTrip(t, "sqlite:"+file, "SQLite://"+file)
	alone := filepath.Join(t.TempDir(), "alone.db")
	registryRoundTrip(t, "sqlite:"+alone, "sqlite:"+alone)
}

func TestMySQLRegistry(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	url := server.URL(server.NewDatabase(t))
	registryRoundTrip(t, url, url+"?claim_delay=0")
}

func TestZooKeeperPool(t *testing.T) {
	server := testserver.ZooKeeper(t)
	url := "zookeeper://" + server.Addr() + "?name=shop"
	registryRoundTrip(t, url, url+"&layout=pool&claim_delay=1s")
	roundTrip(t, url)
}

func TestZooKeeperLeaf(t *testing.T) {
	server := testserver.ZooKeeper(t)
	url := "zookeeper://" + server.Addr() + "?layout=leaf&name=shop&ip=192.0.2.7"
	if ok, err := registryExists(t.Context(), url); err != nil || !ok {
		t.Errorf("RegistryExists: %v, %v; it makes what it needs", ok, err)
	}
	if err := initRegistry(t.Context(), url); !errors.Is(err, drivers.ErrNothingToCreate) {
		t.Errorf("InitRegistry: %v, want ErrNothingToCreate", err)
	}
	registry := openRegistry(t, url, &drivers.RegistryOptions{Port: 8080})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if id, err := registry.(worker.Assigner).Assign(ctx, 1023); err != nil || id != 1 {
		t.Errorf("Assign: %d, %v, want 1, since 0 is the number that Java servers race for", id, err)
	}
}

func TestStatic(t *testing.T) {
	free := testserver.FreeWorker(t, 1023)
	url := fmt.Sprintf("static:%d?reclaim=machine", free)
	b := backend(t, url)
	registry, err := b.Registry(&drivers.RegistryOptions{Lock: lock(t.TempDir())})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := registry.(worker.Assigner).Assign(t.Context(), 1023); err != nil || id != int64(free) || !b.Traits.Reclaim {
		t.Errorf("Assign: %d, %v, traits %+v", id, err, b.Traits)
	}
	elsewhere := &drivers.RegistryOptions{Lock: lock(t.TempDir())}
	if _, err := backend(t, url).Registry(elsewhere); err == nil || !strings.Contains(err.Error(), "in use by another process on this machine") {
		t.Errorf("from another data directory: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	openRegistry(t, url, &drivers.RegistryOptions{Lock: lock(t.TempDir())}) // free again
	if _, err := backend(t, "static:7").Registry(nil); err == nil || !strings.Contains(hint.Of(err), "ask that server") {
		t.Errorf("without a data directory: %v", err)
	}
	if err := initRegistry(t.Context(), "static:7"); !errors.Is(err, drivers.ErrNothingToCreate) {
		t.Errorf("InitRegistry: %v, want ErrNothingToCreate", err)
	}
	if ok, err := registryExists(t.Context(), "static:7"); err != nil || !ok {
		t.Errorf("RegistryExists: %v, %v", ok, err)
	}
}

func TestTraits(t *testing.T) {
	tree := drivers.Traits{Assigned: true, Settle: true, MaxAhead: time.Second}
	reclaimed := tree
	reclaimed.Reclaim = true
	for url, want := range map[string]drivers.Traits{
		"mysql://h/db":                            {},
		"mysql://u:p?x@h/db?claim_delay=30s":      {ClaimDelay: 30 * time.Second},
		"mysql://h/db?tls=true&claim_delay=0":     {ClaimDelay: -1},
		"mysql://h/db?layout=worker_node":         {Disposable: true},
		"jdbc:mysql://h/db":                       {},
		"sqlite:x":                                {Local: true},
		"SQLITE:x":                                {Local: true},
		"ticket+mysql://h/db":                     {Ticket: true},
		"nats://h":                                {},
		"leaf://127.0.0.1:8080":                   {Local: true},
		"leafs://t@localhost:1,[::1]?store_id=x":  {Local: true, StoreID: "x"},
		"leaf://127.0.0.1,h":                      {},
		"zookeeper://127.0.0.1?claim_delay=0s":    {ClaimDelay: -1},
		"zookeeper://h/a/b?layout=leaf&name=n":    tree,
		"static:7":                                {Local: true, Assigned: true},
		"static:0?reclaim=machine&claim_delay=1m": {Local: true, Assigned: true, Reclaim: true, ClaimDelay: time.Minute},
		"zookeeper://h?layout=leaf&name=n&port=1&ip=10.0.0.1&reclaim=machine": reclaimed,
	} {
		got, err := traitsOf(url)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, %s", url, err, diff)
		}
	}
}

func TestRegistryMalformed(t *testing.T) {
	for url, want := range map[string]string{
		"":                                        "it has no scheme",
		"7":                                       "it has no scheme: write it as in sqlite:PATH or mysql://user:password@host:3306/db; there are sqlite, mysql, postgres, etcd, nats, zookeeper, ticket+mysql, static, redis",
		"zookeper://h":                            "unknown scheme (did you mean zookeeper?)",
		"consul://h":                              "unknown scheme: write",
		"static:":                                 "write the worker ID as a number",
		"static:-1":                               "write the worker ID as a number",
		"static:07":                               "write the worker ID as a number",
		"static:x":                                "write the worker ID as a number",
		"static:7?reclaim=yes":                    "the only value is machine",
		"static:7?recliam=machine":                `unknown parameter "recliam" (known: reclaim, claim_delay, store_id); did you mean reclaim?`,
		"static:7?claim_delay=1":                  "not a duration such as 30s",
		"static:7?claim_delay=-1s":                "not a duration such as 30s",
		"static:7?reclaim=machine&reclaim=x":      "more than once",
		"sqlite:":                                 "it names no file",
		"mysql://u:secret@h/db?reclaim=machine":   "is for worker IDs that are assigned",
		"mysql://u:secret@h/db?claimdelay=3s":     `unknown parameter "claimdelay"`,
		"mysql://u:secret@h/db?tsl=true":          "did you mean tls?",
		"mysql://u:secret@h":                      "the name of the database is missing",
		"zookeeper:h":                             "two slashes are missing",
		"zookeeper://":                            "a host or its port is malformed",
		"zookeeper://h,,i":                        "a host or its port is malformed",
		"zookeeper://h:x":                         "a host or its port is malformed",
		"zookeeper://h?layout=java":               `layout "java" is neither pool, nor leaf`,
		"zookeeper://h?layout=leaf":               "needs name=…, the leaf.name",
		"zookeeper://h?layout=leaf&naem=n":        "did you mean name?",
		"zookeeper://h?port=1":                    "ip and port are for layout=leaf",
		"zookeeper://h?layout=leaf&name=":         "cannot be part of a path",
		"zookeeper://h?name=a/b":                  "cannot be part of a path",
		"zookeeper://h?layout=leaf&name=n&port=0": "port is not a number",
		"zookeeper://h?layout=leaf&name=n&ip=::1": "IPv4 literals",
		"zookeeper://h//x":                        "not a path such as /apps/id",
		"zookeeper://h?nmae=x":                    "did you mean name?",
		"zookeeper://h?reclaim=machine":           "is for worker IDs that are assigned",
	} {
		err := drivers.CheckRegistry(url)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	if _, err := backend(t, "zookeeper://h?layout=leaf&name=n&ip=10.0.0.1").Registry(nil); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), "needs port=") {
		t.Errorf("no port at all: %v", err)
	}
	openRegistry(t, "zookeeper://h?layout=leaf&name=n", &drivers.RegistryOptions{Observe: true}) // which needs no port
}

func TestRegistryKey(t *testing.T) {
	for url, want := range map[string]string{
		"mysql://u:secret@H/db?claim_delay=0":                 "mysql://h:3306/db",
		"jdbc:mysql://h:3306/db?user=u&password=secret":       "mysql://h:3306/db",
		"zookeeper://b:2182,A/x/":                             "zookeeper://a:2181,b:2182/x?layout=pool&name=leaf",
		"zookeeper://a:2181?layout=leaf&name=n&port=9&ip=::1": "",
		"zookeeper://a:2181?layout=leaf&name=n&port=9":        "zookeeper://a:2181?layout=leaf&name=n",
		"STATIC:7?reclaim=machine":                            "static:7",
	} {
		got, err := keyOf(url)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v, want %q", url, got, err, want)
		}
	}
}

func TestFromCurator(t *testing.T) {
	for connect, want := range map[string]string{
		"zk":                      "zookeeper://zk?layout=leaf&name=com.x&port=8080",
		" h1:2181, h2:2182 ":      "zookeeper://h1:2181,h2:2182?layout=leaf&name=com.x&port=8080",
		"h1:2181,h2:2181/apps/id": "zookeeper://h1:2181,h2:2181/apps/id?layout=leaf&name=com.x&port=8080",
		"h1/a b":                  "zookeeper://h1/a%20b?layout=leaf&name=com.x&port=8080",
		"":                        "",
		"h1:x":                    "",
		"h1//x":                   "",
	} {
		got, err := drivers.FromCurator(connect, "com.x", 8080)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v, want %q", connect, got, err, want)
		}
	}
}
