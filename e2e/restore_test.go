package e2e

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A backedUp is a store with the means of its own technology to save it and to put it
// back.
type backedUp struct {
	url     string
	backup  func(t *testing.T) // while servers use it
	restore func(t *testing.T) // with every server stopped
}

// Yesterday's backup is put in place, on every kind of store: with the counters raised
// nothing is issued twice. Not raised, a server that remembers nothing issues twice, and
// one that remembers lifts the counter by itself.
func TestRestoredStore(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	stores := map[string]func(t *testing.T) backedUp{
		"sqlite":   sqliteBackedUp,
		"mysql":    mysqlBackedUp,
		"postgres": postgresBackedUp,
		"etcd":     etcdBackedUp,
		"redis":    redisBackedUp,
		"tickets":  func(t *testing.T) backedUp { return ticketsBackedUp(t, "") },
		"blocks":   func(t *testing.T) backedUp { return ticketsBackedUp(t, "?stride=50") },
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			restoredStore(t, open(t))
		})
	}
}

func restoredStore(t *testing.T, b backedUp) {
	n := figure(200, 1000)
	data := filepath.Join(t.TempDir(), "data")
	leafCommand(t, "init", "--store", b.url)
	leafCommand(t, "tag", "create", "order", "--step", "10", "--store", b.url)

	was := b.serve(t, data)
	issued := was.draw("order", n/2)
	b.backup(t)
	leafCommand(t, "tag", "create", "late", "--step", "10", "--store", b.url)
	late := was.draw("late", 50)
	issued = append(issued, was.draw("order", 2*n)...)
	was.kill()
	remembered := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(remembered, os.DirFS(data)); err != nil {
		t.Fatal(err)
	}

	b.restore(t)
	forgetful := b.serve(t, filepath.Join(t.TempDir(), "data"))
	repeated := common(issued, forgetful.draw("order", n/2))
	forgetful.kill()
	if repeated == 0 {
		t.Error("not raised, no ID was issued twice: the test shows nothing")
	}
	b.restore(t)
	guarded := b.serve(t, data)
	if n := common(issued, guarded.draw("order", n)); n > 0 {
		t.Errorf("not raised, a server that remembers issued %d IDs twice", n)
	}
	guarded.logged(time.Second, "the store has lost writes")
	guarded.kill()

	b.restore(t)
	raised := leafCommand(t, "tag", "raise", "--all", "--by", "1000000", "--store", b.url)
	if want := "raised order: max_id "; strings.Count(raised, want) != 1 || strings.Count(raised, "\n") != 1 {
		t.Errorf("leaf tag raise printed\n%swant a line that begins %q", raised, want)
	}
	leafCommand(t, "tag", "create", "late", "--step", "10", "--max-id", "1000000", "--store", b.url)
	now := []*server{b.serve(t, filepath.Join(t.TempDir(), "data")), b.serve(t, remembered)}
	var orders, lates drivertest.IDs
	orders.Shard().Add(issued...)
	lates.Shard().Add(late...)
	for _, s := range now {
		orders.Shard().Add(s.draw("order", n)...)
		lates.Shard().Add(s.draw("late", 50)...)
		if log := s.output(); strings.Contains(log, "lost writes") {
			t.Errorf("the guard found something to lift:\n%s", log)
		}
	}
	if err := errors.Join(orders.Check(), lates.Check()); err != nil {
		t.Fatal(err)
	}
	t.Logf("not raised: %d of %d IDs twice; raised: %d IDs, no duplicate", repeated, n/2, orders.Count()+lates.Count())
}

// A registry goes back to before a worker ID was another one's: what that one issued is
// unknown to it. Once the last horizon of before has passed, nothing is issued twice.
func TestRestoredRegistry(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	b := sqliteBackedUp(t)
	initWorkers(t, b.url)
	var all drivertest.Ranges
	start := func() *node { // the layout has one worker ID
		return startNode(t, &all, nodeConfig{Workers: b.url, Data: t.TempDir(), Horizon: 2 * time.Second})
	}
	before := start()
	before.take(1000)
	b.backup(t)
	before.stop()
	lost := start()
	horizon := lost.take(11_000_000).Until // as far ahead of the clock as it may
	lost.kill()
	b.restore(t)
	time.Sleep(time.Until(horizon))
	start().take(1_000_000)
	checkRanges(t, &all, 12_000_000)
}

// serve starts a server that keeps little in memory, so that the counter moves all the
// time.
func (b backedUp) serve(t *testing.T, data string) *server {
	t.Helper()
	return serve(t, "--store", b.url, "--data", data, "--config",
		config(t, "leaf.yaml", "segment: {max_stock: 50}\nsnowflake: {enable: false}\n"))
}

// draw returns n IDs, once the server gives any.
func (s *server) draw(tag string, n int) (ids []int64) {
	s.t.Helper()
	for len(ids) < n {
		until(s.t, 20*time.Second, "issuing "+tag, func() error {
			some, err := s.ids(tag, 50)
			ids = append(ids, some...)
			return err
		})
	}
	return ids
}

// common returns how many of the IDs in b are in a.
func common(a, b []int64) (n int) {
	slices.Sort(a)
	for _, id := range b {
		if _, found := slices.BinarySearch(a, id); found {
			n++
		}
	}
	return n
}

// tool runs a program of the database's, with a file, if given, as its input.
func tool(t *testing.T, input string, line ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), line[0], line[1:]...)
	if input != "" {
		file, err := os.Open(input)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		cmd.Stdin = file
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%q: %v (make deps installs what is missing)\n%s", line, err, out)
	}
}

// replace puts a copy of one file or folder in the place of another one.
func replace(t *testing.T, from, to string) {
	t.Helper()
	err := os.RemoveAll(to)
	info, statErr := os.Stat(from)
	switch {
	case err != nil || statErr != nil:
		err = errors.Join(err, statErr)
	case info.IsDir():
		err = os.CopyFS(to, os.DirFS(from))
	default:
		var text []byte
		if text, err = os.ReadFile(from); err == nil {
			err = os.WriteFile(to, text, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func sqliteBackedUp(t *testing.T) backedUp {
	live, saved := filepath.Join(t.TempDir(), "ids.db"), filepath.Join(t.TempDir(), "backup.db")
	return backedUp{
		url: "sqlite:" + live,
		backup: func(t *testing.T) {
			db, err := sql.Open("sqlite", live)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.ExecContext(t.Context(), "VACUUM INTO ?", saved); err != nil {
				t.Fatal(err)
			}
		},
		restore: func(t *testing.T) {
			for _, rest := range []string{"-wal", "-shm"} { // they belong to the file that goes
				if err := os.Remove(live + rest); err != nil && !errors.Is(err, fs.ErrNotExist) {
					t.Fatal(err)
				}
			}
			replace(t, saved, live)
		},
	}
}

// dumped saves a database of the shared MariaDB, and returns what puts it back.
func dumped(t *testing.T, database string) (backup, restore func(t *testing.T)) {
	saved := filepath.Join(t.TempDir(), database+".sql")
	as := []string{"--no-defaults", "--user=root", "--socket=" + mariadb.Socket()}
	backup = func(t *testing.T) {
		tool(t, "", slices.Concat([]string{"mariadb-dump"}, as, []string{"--single-transaction", "--result-file=" + saved, database})...)
	}
	restore = func(t *testing.T) { tool(t, saved, slices.Concat([]string{"mariadb"}, as, []string{database})...) }
	return backup, restore
}

func mysqlBackedUp(t *testing.T) backedUp {
	database := mariadb.NewDatabase(t)
	backup, restore := dumped(t, database)
	return backedUp{mariadb.URL(database), backup, restore}
}

// ticketsBackedUp saves each of two ticket servers by itself.
func ticketsBackedUp(t *testing.T, params string) backedUp {
	one, other := mariadb.NewDatabase(t), mariadb.NewDatabase(t)
	backupOne, restoreOne := dumped(t, one)
	backupOther, restoreOther := dumped(t, other)
	return backedUp{
		url:     "ticket+" + mariadb.URL(one) + "," + strings.TrimPrefix(mariadb.URL(other), "mysql://") + params,
		backup:  func(t *testing.T) { backupOne(t); backupOther(t) },
		restore: func(t *testing.T) { restoreOne(t); restoreOther(t) },
	}
}

func postgresBackedUp(t *testing.T) backedUp {
	server := testserver.Postgres(t, nil)
	url := server.URL(server.NewDatabase(t))
	saved := filepath.Join(t.TempDir(), "leaf.sql")
	return backedUp{
		url:    url,
		backup: func(t *testing.T) { tool(t, "", "pg_dump", "--clean", "--if-exists", "--file="+saved, url) },
		restore: func(t *testing.T) {
			tool(t, "", "psql", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--quiet", "--file="+saved, url)
		},
	}
}

// etcdBackedUp copies the data of a stopped member. To clients the copy looks like a restored
// snapshot: the same keys and revisions as before.
func etcdBackedUp(t *testing.T) backedUp {
	cluster := testserver.Etcd(t, nil)
	live, saved := filepath.Join(cluster.Dir, "m0"), filepath.Join(t.TempDir(), "saved")
	stopped := func(t *testing.T, do func()) {
		if err := cluster.Kill(0); err != nil {
			t.Fatal(err)
		}
		do()
		if err := cluster.Restart(0); err != nil {
			t.Fatal(err)
		}
	}
	return backedUp{
		url:     cluster.URL("leaf"),
		backup:  func(t *testing.T) { stopped(t, func() { replace(t, live, saved) }) },
		restore: func(t *testing.T) { stopped(t, func() { replace(t, saved, live) }) },
	}
}

func redisBackedUp(t *testing.T) backedUp {
	server := testserver.Redis(t, nil)
	live, saved := filepath.Join(server.Dir, "appendonlydir"), filepath.Join(t.TempDir(), "saved")
	return backedUp{
		url:    server.URL(),
		backup: func(t *testing.T) { replace(t, live, saved) },
		restore: func(t *testing.T) {
			if err := server.Kill(); err != nil {
				t.Fatal(err)
			}
			replace(t, saved, live)
			if err := server.Start(); err != nil {
				t.Fatal(err)
			}
		},
	}
}
