package drivers

import (
	"os"
	"strings"
	"testing"
)

// examples are URLs of each scheme.
func examples() map[string]string {
	all := map[string]string{
		"sqlite": "sqlite:x", "mysql": "mysql://h/db", "postgres": "postgres://h/db", "etcd": "etcd://h", "nats": "nats://h",
		"zookeeper": "zookeeper://h", "ticket+mysql": "ticket+mysql://h/db", "static": "static:7", "redis+unix": "redis+unix:///s",
		"cluster": "cluster:x", "leaf": "leaf://h", "leafs": "leafs://h",
	}
	for _, scheme := range []string{"redis", "rediss", "redis+cluster", "rediss+cluster"} {
		all[scheme] = scheme + "://h"
	}
	for _, scheme := range []string{"redis+sentinel", "rediss+sentinel"} {
		all[scheme] = scheme + "://h/main"
	}
	return all
}

// Each store and each registry is in the tables that a reader chooses from.
func TestDocsNameEveryDriver(t *testing.T) {
	var stores, registries []string
	for _, d := range table() {
		b, err := Open(examples()[d.scheme], nil)
		if err != nil {
			t.Fatal(err)
		}
		if b.Tags.Unfit == nil {
			stores = append(stores, d.scheme)
		}
		if b.Workers.Unfit == nil {
			registries = append(registries, d.scheme)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	for page, schemes := range map[string][]string{"segment-mode": stores, "snowflake-mode": registries, "stores": append(stores, registries...)} {
		text, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		for _, scheme := range schemes {
			scheme, _, secure := strings.Cut(scheme, "rediss") // over TLS: told once for all forms
			if secure {
				scheme = "rediss"
			}
			if !strings.Contains(string(text), "`"+scheme) {
				t.Errorf("docs/%s.md does not name %s", page, scheme)
			}
		}
	}
}
