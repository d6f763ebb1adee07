package drivers_test

import (
	"errors"
	"fmt"
	neturl "net/url"
	"testing"

	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
)

// Two servers that know nothing of each other are noticed before anything is taken from them.
func TestHostsOfTwoStores(t *testing.T) {
	kinds := map[string]struct {
		form  string
		start func() (url string)
	}{
		"etcd":      {"etcd://%s/leaf", func() string { return testserver.Etcd(t, nil).URL("") }},
		"nats":      {"nats://%s", func() string { return testserver.NATS(t).URL() }},
		"zookeeper": {"zookeeper://%s", func() string { return "zookeeper://" + testserver.ZooKeeper(t).Addr() }},
		"postgres":  {"postgres://postgres@%s/postgres?sslmode=disable", func() string { return testserver.Postgres(t, nil).URL("postgres") }},
		"mysql": {"mysql://root@%s/ids", func() string {
			server := testserver.MariaDB(t, nil)
			server.Exec(t, "", "CREATE DATABASE ids")
			return server.URL("ids")
		}},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			url := func(hosts string) string { return fmt.Sprintf(kind.form, hosts) }
			var ports [2]string
			for i := range ports {
				server, err := neturl.Parse(kind.start())
				if err != nil {
					t.Fatal(err)
				}
				ports[i] = server.Port()
				if err := initStore(t.Context(), url("127.0.0.1:"+ports[i]), sample); err != nil {
					t.Fatal(err)
				}
			}
			check := func(hosts string, wantSilent int, want error) {
				t.Helper()
				silent, err := backend(t, url(hosts)).CompareHosts(t.Context())
				if len(silent) != wantSilent || !errors.Is(err, want) {
					t.Errorf("%s: silent %v, error %v", hosts, silent, err)
				}
			}
			check("127.0.0.1:"+ports[0], 0, nil)
			check("127.0.0.1:"+ports[0]+",localhost:"+ports[0], 0, nil)
			check("127.0.0.1:"+ports[0]+",127.0.0.1:1", 1, nil)
			check("127.0.0.1:"+ports[0]+",127.0.0.1:"+ports[1], 0, drivers.ErrSeveralStores)
		})
	}
}
