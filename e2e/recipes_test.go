package e2e

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/internal/testserver"
)

// A recipe is a block of commands on a page that changes the state of a store.
type recipe struct {
	page, has string // the block that contains this text
	open      func(t *testing.T) *site
}

// A site is where somebody follows a recipe: servers with clients, and a shell.
type site struct {
	t             *testing.T
	dir           string   // where the commands run
	before, after string   // the store of the servers
	private       []string // names of a page, and their values here
	prepare       []string // the page's commands while the servers run, found by their text
	both          bool     // servers may have either store at any time, and those of before may go on
	back          string   // the page's commands for the way back, found by their text

	seen drivertest.IDs
}

var recipes = map[string]recipe{
	"restore sqlite":   {"backup.md", "mv restored.db ids.db", sqliteSite},
	"restore mysql":    {"backup.md", "CREATE DATABASE leaf_restored", mysqlSite},
	"move store":       {"stores.md", `leaf init --store "$NEW"`, movedSite},
	"move sqlite":      {"stores.md", "mv ids ids.moved", movedSQLiteSite},
	"resize tickets":   resized(""),
	"resize tables":    resized("&table_per_tag=true"),
	"resize blocks":    resized("&stride=50"),
	"restore postgres": {"backup.md", "psql -c", postgresSite},
}

// A reader follows a recipe and stops after any of its commands: servers then start with the
// previous URL. Later the reader continues, and follows the recipe once more from its first command.
// No ID comes twice, on servers that remember and on new ones.
func TestRecipes(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	for name, r := range recipes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for done := range len(block(t, r.page, r.has)) + 1 {
				t.Run(fmt.Sprintf("stopped after %d", done), func(t *testing.T) {
					t.Parallel()
					r.open(t).follow(r, done)
				})
			}
		})
	}
}

// follow stops after the first commands of the recipe, and continues later.
func (s *site) follow(r recipe, done int) {
	s.t.Helper()
	leafCommand(s.t, "init", "--store", s.before)
	leafCommand(s.t, "tag", "create", "order", "--step", "10", "--store", s.before)
	remembering := filepath.Join(s.t.TempDir(), "data")
	old := s.serve(s.before, remembering)
	s.load(old)
	if len(s.prepare) > 0 {
		var busy sync.WaitGroup
		busy.Go(func() { s.load(old) })
		for _, text := range s.prepare {
			for _, line := range block(s.t, r.page, text) {
				s.must(line)
			}
		}
		busy.Wait()
		s.load(old)
	}
	if !s.both {
		old.kill()
	}

	steps := block(s.t, r.page, r.has)
	for _, line := range steps[:done] {
		s.must(line)
	}
	s.try(s.before)
	if s.both || done == len(steps) {
		s.try(s.after)
	}
	for _, line := range steps[done:] {
		s.must(line)
	}
	s.load(s.serve(s.after, filepath.Join(s.t.TempDir(), "data")), s.serve(s.after, remembering))
	for _, line := range steps { // as a script that ends with the first error
		if err := s.run(line); err != nil {
			break
		}
	}
	s.try(s.after)
	if s.both {
		s.take(old)
		s.try(s.before)
	}
	if s.back != "" {
		s.must(block(s.t, r.page, s.back)[0])
		s.try(s.before)
	}
	if err := s.seen.Check(); err != nil {
		s.t.Error(err)
	}
}

// serve starts a server that keeps little in memory, so that the counter moves all the time.
func (s *site) serve(url, data string) *server { return backedUp{url: url}.serve(s.t, data) }

// load has two clients of each server take IDs.
func (s *site) load(servers ...*server) {
	var wg sync.WaitGroup
	for _, server := range servers {
		for range 2 {
			shard := s.seen.Shard()
			wg.Go(func() { shard.Add(server.draw("order", 200)...) })
		}
	}
	wg.Wait()
	for _, server := range servers {
		s.t.Cleanup(server.kill)
	}
}

// try starts a server that remembers nothing, takes IDs if it gives any, and stops it.
func (s *site) try(url string) {
	s.t.Helper()
	server := launch(s.t, append([]string{leafBinary}, serveArgs([]string{"--store", url, "--data", filepath.Join(s.t.TempDir(), "data"),
		"--config", config(s.t, "leaf.yaml", "segment: {max_stock: 50}\nsnowflake: {enable: false}\n")})...)...)
	defer server.kill()
	select {
	case server.url = <-server.urls:
	case <-server.exited:
		return
	case <-time.After(minWait):
		s.t.Fatalf("leaf serve does not listen:\n%s", server.output())
	}
	s.take(server)
}

// take takes IDs as long as the server gives any.
func (s *site) take(server *server) {
	shard := s.seen.Shard()
	for range 4 {
		ids, err := server.ids("order", 50)
		if err != nil {
			return
		}
		shard.Add(ids...)
	}
}

// must runs a command of a page.
func (s *site) must(line string) {
	s.t.Helper()
	if err := s.run(line); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) run(line string) error {
	cmd := exec.CommandContext(s.t.Context(), "bash", "-euo", "pipefail", "-c", strings.NewReplacer(s.private...).Replace(line))
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "PATH="+filepath.Dir(leafBinary)+":"+os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w (make deps installs what is missing)\n%s", line, err, out)
	}
	return nil
}

// block returns the commands of the block in a page of docs that contains a text. A line that
// begins with a blank, or ends a loop, continues the one before.
func block(t *testing.T, page, has string) (list []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.Split(string(text), "\n```sh\n")[1:] {
		body, _, _ := strings.Cut(part, "```\n")
		if !strings.Contains(body, has) {
			continue
		}
		for line := range strings.Lines(body) {
			if last := len(list) - 1; last >= 0 && (strings.HasPrefix(line, " ") || strings.HasPrefix(line, "done")) {
				list[last] += line
			} else {
				list = append(list, line)
			}
		}
		return list
	}
	t.Fatalf("%s: no block has %q", page, has)
	return nil
}

func sqliteSite(t *testing.T) *site {
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(dir, "ids.db")
	return &site{t: t, dir: dir, before: url, after: url, prepare: []string{"VACUUM INTO"}}
}

func mysqlSite(t *testing.T) *site {
	live := mariadb.NewDatabase(t)
	restored := live + "_restored"
	as := " --no-defaults --user=root --socket=" + mariadb.Socket() + " "
	t.Cleanup(func() { mariadb.Exec(t, "", "DROP DATABASE IF EXISTS "+restored) })
	return &site{
		t: t, dir: t.TempDir(), before: mariadb.URL(live), after: mariadb.URL(restored),
		prepare: []string{"mariadb-dump"},
		private: []string{
			"mysql://leaf:secret@db:3306/leaf_restored", mariadb.URL(restored),
			"mariadb-dump ", "mariadb-dump" + as, "mariadb ", "mariadb" + as,
			"leaf_restored", restored, "=leaf.sql leaf", "=leaf.sql " + live,
		},
	}
}

func postgresSite(t *testing.T) *site {
	server := testserver.Postgres(t, nil)
	live := server.NewDatabase(t)
	return &site{
		t: t, dir: t.TempDir(), before: server.URL(live), after: server.URL(live),
		prepare: []string{"pg_dump"},
		private: []string{
			"postgres://leaf:secret@db:5432/leaf_restored", server.URL(live + "_restored"),
			"postgres://leaf:secret@db:5432/leaf", server.URL(live),
			"postgres://leaf:secret@db:5432/postgres", server.URL("postgres"),
			"leaf_restored", live + "_restored", "leaf_old", live + "_old",
			"DATABASE leaf ", "DATABASE " + live + " ", "RENAME TO leaf'", "RENAME TO " + live + "'",
		},
	}
}

// A backup is restored twice. The second raise must be the larger one: the first one led to the
// same counters, above which IDs were issued since.
func TestRestoredTwice(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	const once, twice = "--by 1000000000000 ", "--by 2000000000000 "
	s := sqliteSite(t)
	again := func(number string) []int64 {
		_ = os.RemoveAll(filepath.Join(s.dir, "old"))
		for _, line := range block(t, "backup.md", "mv restored.db ids.db") {
			s.must(strings.Replace(line, once, number, 1))
		}
		server := s.serve(s.after, filepath.Join(t.TempDir(), "data"))
		defer server.kill()
		return server.draw("order", 200)
	}
	leafCommand(t, "init", "--store", s.before)
	leafCommand(t, "tag", "create", "order", "--step", "10", "--store", s.before)
	s.must(block(t, "backup.md", "VACUUM INTO")[0])
	first := again(once)
	if common(first, again(once)) == 0 {
		t.Error("raised by as much as before, no ID was issued twice: the test shows nothing")
	}
	if n := common(first, again(twice)); n > 0 {
		t.Errorf("raised by twice as much, %d IDs were issued twice", n)
	}
}

// The move of the old SQLite database stops half-way: SQLite does not take its rest for the log of
// the restored one.
func TestRestoredBesideAnOldLog(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t)
	leafCommand(t, "init", "--store", s.before)
	s.must(block(t, "backup.md", "VACUUM INTO")[0])
	steps := block(t, "backup.md", "mv restored.db ids.db")
	s.must("touch ids.db-wal; mkdir old; mv ids.db old/")
	for _, line := range steps[2 : len(steps)-1] {
		s.must(line)
	}
	if err := s.run(steps[len(steps)-1]); err == nil {
		t.Error("the restored database is in place, with the log of another one")
	}
}

// A column of 32 bits has no room for 10^12: the counter of a restored store is set above the
// highest ID of all, with every server stopped.
func TestRestoredWith32Bits(t *testing.T) {
	t.Parallel()
	s := sqliteSite(t)
	leafCommand(t, "init", "--store", s.before)
	leafCommand(t, "tag", "create", "order", "--step", "10", "--max-id", "1250000000", "--store", s.before)
	s.must(block(t, "backup.md", "VACUUM INTO")[0])
	old := s.serve(s.before, filepath.Join(t.TempDir(), "data"))
	s.load(old)
	highest := slices.Max(old.draw("order", 50))
	old.kill()
	for _, line := range block(t, "backup.md", "mv restored.db ids.db") {
		if strings.Contains(line, "raise") {
			line = block(t, "backup.md", "SELECT MAX(id)")[2]
			line = strings.NewReplacer("1251000001", fmt.Sprint(highest+1), "mysql://leaf:secret@db:3306/leaf", "sqlite:restored.db").Replace(line)
		}
		s.must(line)
	}
	s.load(s.serve(s.after, filepath.Join(t.TempDir(), "data")))
	if err := s.seen.Check(); err != nil {
		t.Error(err)
	}
	if last := slices.Max(s.serve(s.after, filepath.Join(t.TempDir(), "data")).draw("order", 50)); last > math.MaxInt32 {
		t.Errorf("%d has more than 32 bits", last)
	}
}

// movedSite has servers that move from MySQL to SQLite.
func movedSite(t *testing.T) *site {
	dir := t.TempDir()
	before, after := mariadb.URL(mariadb.NewDatabase(t)), "sqlite:"+filepath.Join(dir, "new.db")
	return &site{t: t, dir: dir, before: before, after: after, both: true, back: `leaf import --from "$NEW"`,
		private: []string{"$OLD", before, "$NEW", after}}
}

// movedSQLiteSite has a database in a folder of its own, which moves to another file system.
func movedSQLiteSite(t *testing.T) *site {
	dir, mnt := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "ids"), 0o700); err != nil {
		t.Fatal(err)
	}
	return &site{
		t: t, dir: dir, before: "sqlite:" + filepath.Join(dir, "ids", "ids.db"), after: "sqlite:" + filepath.Join(mnt, "ids", "ids.db"),
		private: []string{"/mnt", mnt},
	}
}

// resized is the recipe for a third ticket server, with servers that still have the previous set.
func resized(params string) recipe {
	const page = "ticket+mysql://u:p@h1/db,u:p@h2/db,u:p@h3/db"
	return recipe{"stores.md", "leaf init --resize --store '" + page, func(t *testing.T) *site {
		set := newTicketSet(t, []*testserver.MariaDBServer{mariadb, mariadb, mariadb}, "?timeout=5s"+params)
		return &site{t: t, dir: t.TempDir(), before: set.url(0, 1), after: set.url(0, 1, 2), both: true, private: []string{page, set.url(0, 1, 2)}}
	}}
}
