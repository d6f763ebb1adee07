package e2e

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// mariadbAs returns the URL of a database for a user of its own, who can be locked out.
func mariadbAs(t testing.TB, database, user string) string {
	t.Helper()
	mariadb.Exec(t, "", fmt.Sprintf("CREATE USER %s IDENTIFIED BY 'secret'", user),
		fmt.Sprintf("GRANT ALL ON %s.* TO %s", database, user))
	u, err := url.Parse(mariadb.URL(database))
	if err != nil {
		t.Fatal(err)
	}
	u.User, u.RawQuery = url.UserPassword(user, "secret"), "claim_delay=0s"
	return u.String()
}

func lockOut(t testing.TB, user string) {
	t.Helper()
	mariadb.Exec(t, "", "ALTER USER "+user+" ACCOUNT LOCK", "KILL USER "+user)
}

func letIn(t testing.TB, user string) {
	t.Helper()
	mariadb.Exec(t, "", "ALTER USER "+user+" ACCOUNT UNLOCK")
}

// copyElsewhere copies a directory, and returns the beginning of a command line that runs a command
// with the copy at the directory's path. On one machine this needs a mount namespace: path,
// machine-id, host name and boot are the same.
func copyElsewhere(t testing.TB, dir string) []string {
	t.Helper()
	elsewhere := filepath.Join(t.TempDir(), "copy")
	if out, err := exec.Command("cp", "-a", dir, elsewhere).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return inMounts(t, elsewhere, dir)
}

// inMounts returns the beginning of a command line that runs what follows in a mount
// namespace of its own, with from mounted at to.
func inMounts(t testing.TB, from, to string) []string {
	t.Helper()
	unshare := []string{"unshare", "--mount"}
	if os.Geteuid() != 0 {
		unshare = append(unshare, "--user", "--map-root-user")
	}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		t.Fatalf("this test needs a mount namespace: run it as root, in a container with CAP_SYS_ADMIN: %v\n%s", err, out)
	}
	return append(unshare, "sh", "-c", `mount --bind "$1" "$2" && shift 2 && exec "$@"`, "sh", from, to)
}

// The data directory is copied to the same path in another mount namespace, and a second server
// starts on the copy: it takes another worker ID, in every state of the first server.
func TestCopiedDataDirectory(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for _, original := range []string{"running", "paused", "cut off", "killed", "cut off after the copy"} {
		t.Run(original, func(t *testing.T) { copied(t, original) })
	}
}

func copied(t *testing.T, original string) {
	database := mariadb.NewDatabase(t)
	initWorkers(t, mariadb.URL(database))
	ours, theirs := database+"_original", database+"_copy"
	first, second := mariadbAs(t, database, ours), mariadbAs(t, database, theirs)
	data := filepath.Join(t.TempDir(), "data")
	file := config(t, "leaf.yaml", onlySnowflake)
	a := serve(t, "--config", file, "--data", data, "--workers", first)
	a.awaitSnowflake(10 * time.Second)
	used := a.worker()
	servers := [2]*server{a, a}
	part := figure[int64](50_000, 4_000_000)
	la := startTakes(t, 2, 2000, func(int) *server { return servers[0] })
	la.await(t, part)
	switch original {
	case "paused":
		if err := a.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	case "cut off":
		lockOut(t, ours)
	case "killed":
		a.kill()
	}
	there := copyElsewhere(t, data)
	if original == "cut off after the copy" {
		lockOut(t, ours)
	}
	command := append(there, leafBinary)
	b := serveBy(t, append(command, serveArgs([]string{"--config", file, "--data", data, "--workers", second})...)...)
	b.awaitSnowflake(10 * time.Second)
	if b.worker() == used {
		t.Errorf("both use worker %d", used)
	}
	b.logged(time.Second, "the state file is a copy")
	lb := startTakes(t, 2, 2000, func(int) *server { return b })
	lb.await(t, part)
	if original == "paused" {
		if err := a.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	if original != "killed" {
		la.await(t, la.count.Load()+part)
	}
	lb.await(t, lb.count.Load()+part)
	la.stop()
	lb.stop()
	la.add(lb.seen.Sorted()...)
	la.check(t)
}

// A copy that cannot ask the registry issues nothing: its file proves nothing.
func TestCopyCutOff(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	database := mariadb.NewDatabase(t)
	initWorkers(t, mariadb.URL(database))
	theirs := database + "_copy"
	first, second := mariadbAs(t, database, database+"_original"), mariadbAs(t, database, theirs)
	data := filepath.Join(t.TempDir(), "data")
	file := config(t, "leaf.yaml", onlySnowflake)
	a := serve(t, "--config", file, "--data", data, "--workers", first)
	a.awaitSnowflake(10 * time.Second)
	l := startTakes(t, 2, 2000, func(int) *server { return a })
	l.await(t, 10_000)
	lockOut(t, theirs)
	command := append(copyElsewhere(t, data), leafBinary)
	b := serveBy(t, append(command, serveArgs([]string{"--config", file, "--data", data, "--workers", second})...)...)
	for deadline := time.Now().Add(figure(4*time.Second, 20*time.Second)); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if id, err := b.snowflake("x"); err == nil {
			t.Fatalf("the copy issued %d, worker %d", id, workerOf(id))
		}
	}
	if text := b.readiness(); !strings.Contains(text, "not ready: ") || !strings.Contains(text, "registry") {
		t.Errorf("/readyz answers %s", text)
	}
	letIn(t, theirs)
	b.awaitSnowflake(10 * time.Second)
	if a.worker() == b.worker() {
		t.Errorf("both use worker %d", a.worker())
	}
	lb := startTakes(t, 2, 2000, func(int) *server { return b })
	lb.await(t, figure[int64](50_000, 5_000_000))
	l.await(t, figure[int64](50_000, 5_000_000))
	l.stop()
	lb.stop()
	l.add(lb.seen.Sorted()...)
	l.check(t)
}

// A damaged state file, or another registry's, costs a worker ID and no more.
func TestDamagedStateFile(t *testing.T) {
	t.Parallel()
	url, other := newRegistry(t), newRegistry(t)
	data := filepath.Join(t.TempDir(), "data")
	file := config(t, "leaf.yaml", onlySnowflake)
	state := filepath.Join(data, "worker-0")
	l := new(takes)
	life := func(url string) {
		t.Helper()
		s := serve(t, "--config", file, "--data", data, "--workers", url)
		s.awaitSnowflake(10 * time.Second)
		ranges, err := s.take("x", maxBatch)
		if err != nil {
			t.Fatal(err)
		}
		l.add(ranges...)
		s.kill()
	}
	life(url)
	for name, damage := range map[string]func(text []byte) []byte{
		"empty":     func([]byte) []byte { return nil },
		"truncated": func(text []byte) []byte { return text[:len(text)/3] },
		"corrupt": func(text []byte) []byte {
			for i := range text {
				text[i] ^= 0x55
			}
			return text
		},
	} {
		text, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", name, len(text))
		overwrite(t, state, damage(text))
		life(url)
	}
	l.check(t)
	life(other) // a registry of its own, and so IDs of its own
}

// overwrite replaces the content of a file, which keeps its inode.
func overwrite(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
