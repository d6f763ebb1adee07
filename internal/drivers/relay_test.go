package drivers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/server/access"
	"github.com/leaf-id/leaf/internal/testserver/testleaf"
	"github.com/leaf-id/leaf/segment"
)

func TestLeafURLs(t *testing.T) {
	store := memory.New().Store()
	if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	server := testleaf.Start(t, testleaf.Options{Store: store, Registry: memory.New().Registry()})
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("hunter2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, u := range []string{"leaf://" + server.Host(), "leaf://hunter2@" + server.Host() + "/", "LEAF://" + server.Host() + "," + server.Host() + "?token_file=" + file} {
		if _, err := open(t, u).Advance(t.Context(), "order", 0); err != nil {
			t.Errorf("%s: %v", u, err)
		}
		if _, err := openRegistry(t, u, nil).List(t.Context()); err != nil {
			t.Errorf("%s: %v", u, err)
		}
	}
	for u, want := range map[string]string{"leaf://H,a:9?token_file=" + file: "leaf://a:9,h:8080", "leafs://hunter2@h": "leaf://h:8080"} {
		if key, err := keyOf(u); err != nil || key != want {
			t.Errorf("%s: key %q, %v, want %q", u, key, err, want)
		}
	}
}

func TestLeafURLsRefused(t *testing.T) {
	for u, want := range map[string]string{
		"leaf://":                              "host",
		"leaf:h:8080":                          "two slashes",
		"leaf://h/path":                        "path",
		"leaf://user:hunter2@h":                "colon",
		"leaf://hunter2@h?token_file=/hunter2": "either",
		"leaf://hunter2@h?ca=/x":               "leafs://",
		"leafs://hunter2@h?ca=/nowhere/x":      "ca",
		"leaf://hunter2@h?tokens=x":            "token_file",
	} {
		_, err := drivers.Open(u, nil)
		if !errors.Is(err, leaf.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", u, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the token is in %v", u, err)
		}
	}
}

func TestLeafHostsOfTwoStores(t *testing.T) {
	var hosts []string
	for range 2 {
		store := memory.New().Store()
		if err := store.Create(t.Context(), segment.Tag{Name: "order", MaxID: 1, Step: 10}); err != nil {
			t.Fatal(err)
		}
		server := testleaf.Start(t, testleaf.Options{Store: store})
		if _, err := server.Set.Next(t.Context(), "order"); err != nil { // it knows its store from now on
			t.Fatal(err)
		}
		hosts = append(hosts, server.Host())
	}
	closed := testleaf.Start(t, testleaf.Options{Store: memory.New().Store(), Gate: access.New(access.Options{})})
	for _, tt := range []struct {
		hosts []string
		want  error
	}{
		{[]string{hosts[0], hosts[0]}, nil}, {[]string{hosts[0], closed.Host()}, nil}, {hosts, drivers.ErrSeveralStores},
	} {
		silent, err := backend(t, "leaf://"+strings.Join(tt.hosts, ",")).CompareHosts(t.Context())
		if len(silent) > 0 || !errors.Is(err, tt.want) {
			t.Errorf("%v: silent %v, error %v, want %v", tt.hosts, silent, err, tt.want)
		}
	}
}
