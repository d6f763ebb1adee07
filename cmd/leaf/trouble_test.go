package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/cli"
	"github.com/leaf-id/leaf/internal/drivers"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A place is where a store is made, on a server that can be stopped.
type place struct {
	url, workers string // workers may be empty
	gone         string // the message without an answer; empty: it is a file
	stop, start  func() error
}

func places() map[string]func(t *testing.T) place {
	withPassword := func(url string) string { return strings.Replace(url, "://", "://leaf:hunter2@", 1) }
	return map[string]func(t *testing.T) place{
		"sqlite": func(t *testing.T) place {
			url := "sqlite:" + filepath.Join(t.TempDir(), "ids.db")
			return place{url: url, workers: url}
		},
		"mysql": func(t *testing.T) place {
			s := testserver.MariaDB(t, nil)
			db := s.NewDatabase(t)
			s.Exec(t, db, "GRANT ALL ON "+db+".* TO leaf@'127.0.0.1' IDENTIFIED BY 'hunter2'")
			url := strings.Replace(s.URL(db), "root", "leaf:hunter2", 1)
			return place{url, url + "?claim_delay=0", "no server answers there", s.Stop, s.Start}
		},
		"postgres": func(t *testing.T) place {
			s := testserver.Postgres(t, nil)
			db := s.NewDatabase(t)
			s.Exec(t, db, "CREATE USER leaf PASSWORD 'hunter2'", "GRANT ALL ON SCHEMA public TO leaf")
			url := s.URLOf("leaf", "hunter2", db)
			return place{url, url + "&claim_delay=0", "no server answers there", s.Stop, s.Start}
		},
		"etcd": func(t *testing.T) place {
			s := testserver.Etcd(t, nil)
			url := withPassword(s.URL("ids")) // which etcd, without users, does not look at
			return place{url, url + "?claim_delay=0", "no etcd answers there", func() error { return s.Kill(0) }, func() error { return s.Restart(0) }}
		},
		"redis": func(t *testing.T) place {
			s := testserver.Redis(t, &testserver.RedisOptions{Config: [][2]string{{"user", "leaf on >hunter2 ~* +@all"}}})
			url := withPassword(s.URL())
			return place{url, url + "?claim_delay=0", "no server answers there", s.Stop, s.Start}
		},
		"ticket": func(t *testing.T) place {
			s := testserver.MariaDB(t, nil)
			db := s.NewDatabase(t)
			s.Exec(t, db, "GRANT ALL ON "+db+".* TO leaf@'127.0.0.1' IDENTIFIED BY 'hunter2'")
			return place{"ticket+" + strings.Replace(s.URL(db), "root", "leaf:hunter2", 1), "", "no server answers there", s.Stop, s.Start}
		},
	}
}

// TestServeWithoutItsStore starts a server whose store does not answer, then answers but
// was never created, then is created. The server says so each time, and then serves.
func TestServeWithoutItsStore(t *testing.T) {
	testserver.Long(t)
	drivers.LogTo(slog.New(slog.DiscardHandler))
	for name, make := range places() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := make(t)
			args := []string{"--store", at.url}
			if at.workers != "" {
				args = append(args, "--workers", at.workers)
			}
			if at.gone != "" {
				if err := at.stop(); err != nil {
					t.Fatal(err)
				}
			}
			p, err := startServer(t.TempDir(), os.Environ(), args...)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.kill)
			if at.gone != "" {
				wantError(t, p, "no usable answer (the log of the server says more)", "next", "order", "--server", p.url)
				wantError(t, p, at.gone, "tag", "list", "--store", at.url)
				wantError(t, p, at.gone, "init", "--store", at.url)
				wantLine(t, leafAt(t, p, "status"), "^store    .*, unavailable$")
				wantLine(t, leafAt(t, p, "status"), "^trouble  .*"+at.gone)
				if err := at.start(); err != nil {
					t.Fatal(err)
				}
			}
			wantError(t, p, "the store was not created", "next", "order", "--server", p.url)
			wantError(t, p, "leaf init --store", "tag", "list", "--store", at.url)
			wantSuccess(t, p, "init", "--store", at.url)
			wantSuccess(t, p, "tag", "create", "order", "--step", "10", "--store", at.url)
			wantSuccess(t, p, "next", "order", "--server", p.url)
			wantLine(t, leafAt(t, p, "status"), "^store    .*, reachable$")
			if at.workers != "" {
				wantError(t, p, "the worker registry was not created", "next", "--scheme", "snowflake", "--server", p.url)
				wantSuccess(t, p, "init", "--workers", at.workers)
				wantSuccess(t, p, "next", "--scheme", "snowflake", "--server", p.url)
			}
			if strings.Contains(p.text(), "hunter2") {
				t.Errorf("the log holds the password:\n%s", p.text())
			}
		})
	}
}

// wantError repeats a command until it fails with the wanted text: the earlier problem may show for
// a moment longer.
func wantError(t *testing.T, p *process, want string, args ...string) {
	t.Helper()
	eventually(t, p, args, func(code int, stderr string) error {
		if code != cli.ExitFailed || !strings.Contains(stderr, want) || strings.Contains(stderr, "hunter2") ||
			strings.Count(stderr, "\n") > 2 { // the error, and a hint
			return errors.New("want one error that says " + want)
		}
		return nil
	})
}

func wantSuccess(t *testing.T, p *process, args ...string) {
	t.Helper()
	eventually(t, p, args, func(code int, _ string) error {
		if code != 0 {
			return errors.New("want no error")
		}
		return nil
	})
}

func eventually(t *testing.T, p *process, args []string, check func(code int, stderr string) error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		code, _, stderr := leafRun(t.Context(), args...)
		err := check(code, stderr)
		if err == nil {
			t.Logf("leaf %s: %s", args[0], stderr)
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("leaf %v: exit code %d\n%s\n%v\n%s", args, code, stderr, err, p.text())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// An object in the way of an init may be no store: then the error has a remedy.
func TestInitSaysWhatIsInItsWay(t *testing.T) {
	server := testserver.Redis(t, nil)
	if _, err := server.Do("SET", "{leaf}:store", "text"); err != nil {
		t.Fatal(err)
	}
	const want = "the key belongs to another program"
	if code, _, stderr := leafRun(t.Context(), "init", "--store", server.URL()); code != cli.ExitFailed || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, %q, want %q", code, stderr, want)
	}
}

func TestExplainNoAnswer(t *testing.T) {
	const url = "redis://:hunter2@h"
	store := storeFlag()
	for text, want := range map[string]string{
		"list tags": "no answer from the store redis://:xxxxx@h within 2s",
		"store redis://:xxxxx@h: init redis store":                                      "no answer from the store redis://:xxxxx@h within 2s",
		"list tags: redis at h:6379: the server does not answer in time: write redis":   "no answer from the store redis://:xxxxx@h within 2s: list tags: redis at h:6379: the server does not answer in time: write redis",
		"store redis://:xxxxx@h: init redis store: redis at h:6379: it does not answer": "no answer from the store redis://:xxxxx@h within 2s: init redis store: redis at h:6379: it does not answer",
	} {
		err := store.explainCall(fmt.Errorf("%s: %w", text, context.DeadlineExceeded), url, 2*time.Second)
		if err.Error() != want || !errors.Is(err, context.DeadlineExceeded) || !isHinted(err) {
			t.Errorf("%q, want %q and a hint", err, want)
		}
	}
}
