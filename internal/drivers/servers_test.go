package drivers_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

func TestPostgres(t *testing.T) {
	server := testserver.Postgres(t, nil)
	roundTrip(t, server.URL(server.NewDatabase(t)))
	url := server.URL(server.NewDatabase(t))
	registryRoundTrip(t, url, param(url, "claim_delay=0"))
}

func TestEtcd(t *testing.T) {
	cluster := testserver.Etcd(t, nil)
	roundTrip(t, cluster.URL("/ids"))
	url := cluster.URL("/workers")
	registryRoundTrip(t, url, param(url, "claim_delay=0"))
}

func TestNATS(t *testing.T) {
	url := testserver.NATS(t).URL()
	roundTrip(t, url)
	registryRoundTrip(t, url+"/WORKERS", url+"/WORKERS?claim_delay=0")
}

func TestRedis(t *testing.T) {
	url := testserver.Redis(t, nil).URL()
	roundTrip(t, url)
	registryRoundTrip(t, url, param(url, "claim_delay=0"))
}

func TestTicket(t *testing.T) {
	first, second := testserver.MariaDB(t, nil), testserver.MariaDB(t, nil)
	rest := func() string {
		a, b := first.URL(first.NewDatabase(t)), second.URL(second.NewDatabase(t))
		return strings.TrimPrefix(a, "mysql://") + "," + strings.TrimPrefix(b, "mysql://")
	}
	url := "ticket+mysql://" + rest() + "?stride=100"
	if ok, err := storeExists(t.Context(), url); ok || err != nil {
		t.Fatalf("exists before init: %v, %v", ok, err)
	}
	if _, err := open(t, url).Advance(t.Context(), "order", 1); !errors.Is(err, segment.ErrNotCreated) {
		t.Errorf("before init: %v", err)
	}
	if err := initStore(t.Context(), url, sample); err != nil {
		t.Fatal(err)
	}
	s := open(t, url)
	var got []leaf.Range
	for range 4 {
		g, err := s.Advance(t.Context(), "order", 100)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range got {
			if r.Overlaps(g.Range) {
				t.Errorf("%v and %v overlap", r, g.Range)
			}
		}
		got = append(got, g.Range)
	}
	if err := backend(t, url).Resize(t.Context(), drivers.Resize{}); err != nil {
		t.Errorf("resize to the same: %v", err)
	}
	if err := backend(t, "sqlite:x").Resize(t.Context(), drivers.Resize{}); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("resize of another store: %v", err)
	}
}

// param adds a parameter to a URL.
func param(url, param string) string {
	if strings.Contains(url, "?") {
		return url + "&" + param
	}
	return url + "?" + param
}

// Two URLs of one state have one key, without credentials and parameters.
func TestKeysOfServers(t *testing.T) {
	for _, urls := range [][2]string{
		{"postgres://u:secret@DB/ids?sslmode=disable", "postgres://db:5432/ids"},
		{"postgres://u:s/e#c r?et@h1,h2:5433/ids", "postgres://u:secret@h2:5433,h1:5432/ids"},
		{"etcd://u:secret@h1,h2:2379/a", "etcd://h2,H1:2379/a/"},
		{"etcd://h1", "etcd://h1:2379/leaf"},
		{"nats://u:secret@h1,h2/", "nats://secret@h2:4222,H1/LEAF"},
		{"zookeeper://h1,h2:2181", "zookeeper://h2,h1/?name=leaf"},
		{"redis://:secret@h/0?wait=1", "redis://H:6379"},
		{"rediss://:secret@h", "redis://h"},
		{"Rediss+cluster://h1,h2", "redis+cluster://:secret@h2,h1"},
		{"redis+sentinel://s1,s2/main", "redis+sentinel://u:secret@s2,s1:26379/main/0"},
		{"ticket+mysql://u:secret@h1/a,u:secret@h2:3306/b", "ticket+mysql://v:w@h2/b,v:w@h1:3306/a?stride=5"},
	} {
		a, errA := keyOf(urls[0])
		b, errB := keyOf(urls[1])
		if err := errors.Join(errA, errB); err != nil || a != b || strings.Contains(a, "secret") {
			t.Errorf("%q: %q and %q, %v", urls, a, b, err)
		}
		for _, u := range urls {
			if r := drivers.Redact(u); strings.Contains(r, "secret") {
				t.Errorf("%s is shown as %s", u, r)
			}
		}
	}
}

func TestMalformedServers(t *testing.T) {
	for url, want := range map[string]string{
		"postgres:db":                       "postgres",
		"etcd:h":                            "two slashes are missing",
		"etcd://u:p@h1:x":                   "etcd",
		"etcd://h?tlss=true":                "did you mean tls?",
		"etcd://h?cert=a":                   "cert",
		"redis://h1,h2":                     "redis+sentinel",
		"redis://h?prefixx=a":               "unknown parameter",
		"redis+sentinel://h":                "the name of the primary is missing",
		"ticket+mysql:h":                    "two slashes are missing",
		"ticket+mysql://h":                  "server 1: the name of the database is missing",
		"ticket+mysql://u:p@h/db?stride=no": "stride",
	} {
		if _, err := drivers.Open(url, nil); !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	for url, want := range map[string]string{
		"mysql://h?layout=worker_node": "unknown parameter", "redis://h:x": "write redis://host:6379", "etcd:h": "write etcd://",
	} {
		_, err := drivers.ReadForeign(t.Context(), url, nil)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) || strings.Count(err.Error(), url) != 1 {
			t.Errorf("counters of %s: %v, want %q", url, err, want)
		}
	}
	for _, url := range []string{"etcd://h?reclaim=machine", "redis://h?claim_delay=soon", "ticket+mysql://u:p@h/db", "postgres://h/db?reclaim=machine"} {
		if err := drivers.CheckRegistry(url); !errors.Is(err, leaf.ErrInvalid) {
			t.Errorf("%s: %v", url, err)
		}
	}
}
