package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

func TestVersions(t *testing.T) {
	info := func(version string) server {
		return server{info: map[string]string{"redis_version": version, "role": "master", "master_replid": "x", "aof_enabled": "1", "maxmemory": "0"}}
	}
	tests := []struct {
		version string
		local   int
		want    string
	}{
		{"5.0.14", 0, "needs 6.0"}, {"6.0.0", 0, ""}, {"6.2", 0, ""}, {"7.0.15", 0, ""}, {"10.1.0", 0, ""}, {"", 0, "needs 6.0"}, {"x", 0, "needs 6.0"},
		{"7.0.15", 1, "needs 7.2"}, {"7.2.0", 1, ""}, {"8.0.0", 1, ""},
	}
	for _, tt := range tests {
		err := info(tt.version).unfit(Config{WaitLocal: tt.local})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("version %q, waitaof %d: %v, want %q", tt.version, tt.local, err, tt.want)
		}
	}
}

func TestAdvice(t *testing.T) {
	for text, want := range map[string]string{
		"DENIED Redis is running in protected mode because ...":                                             "protected mode",
		"LOADING Redis is loading the dataset in memory":                                                    "still loading",
		"MISCONF Redis is configured to save RDB snapshots":                                                 "its disk",
		"CLUSTERDOWN Hash slot not served":                                                                  "CLUSTER INFO",
		"BUSY Redis is busy running a script":                                                               "SCRIPT KILL",
		"READONLY You can't write against a read only replica. script: 1, on @":                             "name the primary",
		"WRONGTYPE Operation against a key holding the wrong kind of value script: 1, on @user_script:2.":   "another prefix",
		"ERR Error running script (call to f_1): @user_script:7: @user_script: 7: -OOM command not allowed": "memory is full",
		"ERR Error running script (call to f_1): @user_script: 7: WRONGTYPE Operation":                      "another prefix",
		"hello": "",
	} {
		code, _ := splitCode(text)
		got := serverAdvice(code)
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func newBackend(t *testing.T, s *testserver.RedisServer) backend {
	t.Helper()
	c, err := newClient(Config{Addrs: []string{s.Addr()}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return backend{c}
}

// TestLooksAgain changes the settings of a fit server.
func TestLooksAgain(t *testing.T) {
	s := testserver.Redis(t, nil)
	b := newBackend(t, s)
	db := kv.New(b, nil)
	defer db.Close()
	if err := db.Init(t.Context(), []segment.Tag{{Name: "order", Step: 1}}); err != nil {
		t.Fatal(err)
	}
	store := db.Store()
	age := func() {
		f := *b.client.facts.Load()
		f.at = f.at.Add(-lookEvery - time.Second)
		b.client.facts.Store(&f)
	}
	advance := func() error {
		_, err := store.Advance(t.Context(), "order", 1)
		return err
	}
	if err := advance(); err != nil {
		t.Fatal(err)
	}
	for _, maxmemory := range []string{"100mb", "0"} {
		for _, args := range [][]string{{"CONFIG", "SET", "maxmemory-policy", "allkeys-lru"}, {"CONFIG", "SET", "maxmemory", maxmemory}} {
			if _, err := s.Do(args...); err != nil {
				t.Fatal(err)
			}
		}
		if err := advance(); maxmemory != "0" && err != nil {
			t.Errorf("looked again at once: %v", err)
		}
		age()
		if err := advance(); (err != nil) != (maxmemory != "0") {
			t.Errorf("with maxmemory %s: %v", maxmemory, err)
		}
	}
}

// A listing misses nothing where the server is started again meanwhile: to the new one a
// cursor of the former one means something else.
func TestListOverARestart(t *testing.T) {
	s := testserver.Redis(t, nil)
	b := newBackend(t, s)
	defer b.Close()
	const cells = 5000
	args := append([]string{"HSET"}, b.hash(kv.Key{Kind: kv.Workers})...)
	for i := range cells {
		args = append(args, fmt.Sprintf("workers/%d", i), "x")
	}
	if _, err := s.Do(args...); err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for cell, err := range b.List(t.Context(), kv.Workers) {
		if err != nil || listed[cell.Key.Name] {
			t.Fatalf("%s: %v", cell.Key.Name, err)
		}
		if listed[cell.Key.Name] = true; len(listed) == cells/2 {
			if err := errors.Join(s.Stop(), s.Start()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(listed) != cells {
		t.Errorf("listed %d of %d cells", len(listed), cells)
	}
}
