package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// leafRun runs one command line in this process.
func leafRun(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Run(ctx, newRoot(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestOtherServers(t *testing.T) {
	hang := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/hang/", func(http.ResponseWriter, *http.Request) { <-hang })
	mux.HandleFunc("/page/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>hello")) })
	srv := httptest.NewServer(mux)
	defer srv.Close()
	defer close(hang)
	tests := map[string]struct{ path, err, hint string }{
		"no such page": {"/none", "is not a Leaf server", "--server URL"},
		"a web page":   {"/page", "is not a Leaf server", "--server URL"},
		"hangs":        {"/hang", "no answer from " + srv.URL + "/hang within 200ms", "--timeout"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for _, args := range [][]string{{"status"}, {"next", "a"}, {"tag", "list"}, {"tag", "delete", "a"}} {
				code, stdout, stderr := leafRun(t.Context(), append(args, "--server", srv.URL+test.path, "--timeout", "200ms")...)
				if code != 1 || stdout != "" || !strings.Contains(stderr, test.err) || !strings.Contains(stderr, test.hint) {
					t.Errorf("leaf %v: exit code %d, stdout %q, stderr:\n%s", args, code, stdout, stderr)
				}
			}
		})
	}
}

// A store that accepts connections and says nothing.
func TestSilentStore(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	url := "mysql://u:secret@" + silent.Addr().String() + "/leaf"
	tests := []struct {
		who, flag string
		args      []string
	}{
		{"store", "--store", []string{"tag", "list"}},
		{"store", "--store", []string{"tag", "create", "a", "--step", "1"}},
		{"store", "--store", []string{"tag", "raise", "--all", "--by", "1"}},
		{"store", "--store", []string{"tag", "delete", "a"}},
		{"store", "--store", []string{"init"}},
		{"worker registry", "--workers", []string{"init"}},
		{"worker registry", "--workers", []string{"worker", "list"}},
	}
	for _, test := range tests {
		args := test.args
		code, stdout, stderr := leafRun(t.Context(), append(args, test.flag, url, "--timeout", "300ms")...)
		want := "leaf: error: no answer from the " + test.who + " mysql://u:xxxxx@" + silent.Addr().String() + "/leaf within " // 300ms, or what a busy machine makes of it
		if code != 1 || stdout != "" || !strings.HasPrefix(stderr, want) || !strings.Contains(stderr, "--timeout") || strings.Contains(stderr, "secret") {
			t.Errorf("leaf %v: exit code %d, stdout %q, stderr:\n%s\nwant %s", args, code, stdout, stderr, want)
		}
	}
}

// The hint names 'leaf init' only for a missing table.
func TestInitHint(t *testing.T) {
	store := storeFlag()
	missing := store.explainCall(fmt.Errorf("list tags: %w", segment.ErrNotCreated), "sqlite:x", 0)
	denied := store.explainCall(errors.New("the user lacks a privilege: GRANT SELECT (and CREATE for leaf init) on the database"), "sqlite:x", 0)
	if !isHinted(missing) || isHinted(denied) {
		t.Errorf("hinted: %v for a missing table, %v for a missing privilege", isHinted(missing), isHinted(denied))
	}
	workers := workersFlag()
	if err := workers.explainCall(fmt.Errorf("list workers: %w", worker.ErrNotCreated), "sqlite:x", 0); !isHinted(err) {
		t.Errorf("no hint for a missing table of worker IDs: %v", err)
	}
}

func TestShellWord(t *testing.T) {
	for name, want := range map[string]string{
		"order":   "order",
		"a b":     "'a b'",
		"it's":    `'it'\''s'`,
		"-x":      "'-x'",
		"订单":      "'订单'",
		"$(date)": "'$(date)'",
	} {
		if got := shellWord(name); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", name, got, want)
		}
	}
}
