package drivers_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/worker"
)

func TestNodesURLs(t *testing.T) {
	tests := map[string]struct {
		once      bool
		key, fail string
	}{
		"sqlite:/d/n.db?layout=worker_node":                   {false, "", "is for mysql: URLs"},
		"sqlite:/d/a?b.db":                                    {false, "sqlite:/d/a?b.db", ""},
		"mysql://u:p@H/db?tls=true&layout=worker_node":        {true, "mysql://h:3306/db?layout=worker_node", ""},
		"mysql://u:p?x@h/db?layout=worker_node":               {true, "mysql://h:3306/db?layout=worker_node", ""},
		"mysql://u:p?layout=worker_node@h/db":                 {false, "mysql://h:3306/db", ""},
		"mysql://u:p@h1,h2/db?layout=worker_node":             {true, "mysql://h1:3306,h2:3306/db?layout=worker_node", ""},
		"postgres://u@h/db?layout=worker_node":                {false, "", "is for mysql: URLs"},
		"mysql://u:p@h/db?layout=leaf":                        {false, "", "the only value is worker_node"},
		"mysql://u:p@h/db?layout=":                            {false, "", "the only value is worker_node"},
		"mysql://u:p@h/db?layout=worker_node&claim_delay=0":   {false, "", "claim_delay means nothing"},
		"mysql://u:p@h/db?layout=worker_node&reclaim=machine": {false, "", "reclaim"},
		"mysql://u:p@h/db?layout=worker_node&x=1":             {false, "", "unknown parameter"},
		"mysql://h?layout=worker_node":                        {false, "", "database is missing"},
		"etcd://h:2379/p?layout=worker_node":                  {false, "", "is for mysql: URLs"},
		"static:7?layout=worker_node":                         {false, "", "is for mysql: URLs"},
	}
	for url, tt := range tests {
		key, err := keyOf(url)
		traits, _ := traitsOf(url)
		if key != tt.key || traits.Disposable != tt.once || (err == nil) != (tt.fail == "") ||
			err != nil && (!errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), tt.fail)) {
			t.Errorf("%s: key %q, disposable %v, %v; want %+v", url, key, traits.Disposable, err, tt)
		}
	}
}

func TestNodes(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	url := server.URL(server.NewDatabase(t)) + "?layout=worker_node"
	if ok, err := registryExists(t.Context(), url); ok || err != nil {
		t.Errorf("exists before init: %v, %v", ok, err)
	}
	for _, want := range []error{nil, fs.ErrExist} {
		if err := initRegistry(t.Context(), url); !errors.Is(err, want) || want == nil && err != nil {
			t.Fatalf("init: %v, want %v", err, want)
		}
	}
	if ok, err := registryExists(t.Context(), url); !ok || err != nil {
		t.Errorf("exists after init: %v, %v", ok, err)
	}
	for want := range int64(3) {
		if got, err := openRegistry(t, url, nil).(worker.Assigner).Assign(t.Context(), 10); got != want+1 || err != nil {
			t.Errorf("start: %d, %v, want %d", got, err, want+1)
		}
	}
	r := openRegistry(t, url, &drivers.RegistryOptions{Observe: true})
	starts, err := r.(worker.Disposable).Starts(t.Context(), 10)
	if err != nil || len(starts) != 3 || starts[0].Kind != "actual" {
		t.Errorf("starts: %+v, %v", starts, err)
	}
	if _, err := r.(worker.Assigner).Assign(t.Context(), 10); !errors.Is(err, leaf.ErrInvalid) {
		t.Errorf("who only looks was assigned a worker ID: %v", err)
	}
}

// The environment describes a container, completely or not at all.
func TestNodesInContainers(t *testing.T) {
	server := testserver.MariaDB(t, nil)
	url := server.URL(server.NewDatabase(t)) + "?layout=worker_node"
	t.Setenv("JPAAS_HOST", "10.1.2.3")
	if r, err := backend(t, url).Registry(nil); err == nil || !strings.Contains(err.Error(), "JPAAS_HTTP_PORT") {
		t.Errorf("half a container: %v, %v", r, err)
	}
	t.Setenv("JPAAS_HTTP_PORT", "8080")
	if err := initRegistry(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	r := openRegistry(t, url, nil)
	if _, err := r.(worker.Assigner).Assign(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	starts, err := r.(worker.Disposable).Starts(t.Context(), 10)
	if err != nil || len(starts) != 1 || starts[0].Host != "10.1.2.3" || starts[0].Port != "8080" || starts[0].Kind != "container" {
		t.Errorf("starts: %+v, %v", starts, err)
	}
}
