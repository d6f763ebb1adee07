package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

// An otherName gives an SQLite file another name while a server uses it, and returns
// the path for a second server and the command to start it by.
type otherName struct {
	give   func(t *testing.T, file string) (path string, by []string)
	first  string // the first server's error; empty: it continues
	second string // the same of the second one
}

func otherNames() map[string]otherName {
	link := func(t *testing.T, make func(old, name string) error, old, name string) (string, []string) {
		t.Helper()
		if err := make(old, name); err != nil {
			t.Fatal(err)
		}
		return name, nil
	}
	beside := func(t *testing.T) string { return filepath.Join(t.TempDir(), "ids.db") }
	return map[string]otherName{
		"hard link": {give: func(t *testing.T, file string) (string, []string) {
			return link(t, os.Link, file, beside(t))
		}, first: "has 2 names (hard links)", second: "has 2 names (hard links)"},
		"file mounted": {give: func(t *testing.T, file string) (string, []string) {
			name := beside(t)
			overwrite(t, name, nil)
			return name, inMounts(t, file, name)
		}, second: "mounted by itself"},
		"moved": {give: func(t *testing.T, file string) (string, []string) {
			return link(t, os.Rename, file, beside(t))
		}, first: "was moved, removed or replaced"},
		"folder mounted": {give: func(t *testing.T, file string) (string, []string) {
			folder := t.TempDir()
			return filepath.Join(folder, "ids.db"), inMounts(t, filepath.Dir(file), folder)
		}},
		"file linked": {give: func(t *testing.T, file string) (string, []string) {
			return link(t, os.Symlink, file, beside(t))
		}},
		"folder linked": {give: func(t *testing.T, file string) (string, []string) {
			folder, _ := link(t, os.Symlink, filepath.Dir(file), filepath.Join(t.TempDir(), "folder"))
			return filepath.Join(folder, "ids.db"), nil
		}},
	}
}

// Two servers use one SQLite file under two names, as store and as registry. SQLite names its log
// and its locks after the file: the servers may continue only if both names lead to the same ones,
// and the test compares every ID.
func TestOneFileTwoNames(t *testing.T) {
	t.Parallel()
	for name, other := range otherNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			oneFileTwoNames(t, other)
		})
	}
}

func oneFileTwoNames(t *testing.T, other otherName) {
	part := figure[int64](5_000, 200_000)
	file := newFile(t)
	a := serveFile(t, file)
	first := startBoth(t, a)
	first.await(t, part)
	path, by := other.give(t, file)
	b := serveFile(t, path, by...)
	second := startBoth(t, b)
	if other.first == "" {
		first.await(t, part)
	}
	if other.second == "" {
		second.await(t, part)
	}
	until(t, 20*time.Second, "refused or served", func() error {
		if n := second.counts(); n[0]+n[1] < part && !(strings.Contains(a.output(), other.first) && strings.Contains(b.output(), other.second)) {
			return fmt.Errorf("%v IDs of\n%s", n, b.output())
		}
		return nil
	})
	first.stop()
	second.stop()
	t.Logf("the first server issued %v IDs, the second one %v", first.counts(), second.counts())
	if n := second.counts(); other.second != "" && n != [2]int64{} {
		t.Errorf("the second server issued %v IDs", n)
	}
	first.join(second)
	first.check(t)
	a.logged(0, other.first)
	b.logged(0, other.second)
}

// The test removes the files next to the database under two busy servers, again and again, while a
// third one starts. No ID comes twice, and all servers recover by themselves.
func TestFilesBesideRemoved(t *testing.T) {
	t.Parallel()
	for name, suffixes := range map[string][]string{"-wal": {"-wal"}, "-shm": {"-shm"}, "both": {"-wal", "-shm"}} {
		t.Run(name, func(t *testing.T) {
			if name != "both" {
				testserver.Long(t)
			}
			t.Parallel()
			filesBesideRemoved(t, suffixes)
		})
	}
}

func filesBesideRemoved(t *testing.T, suffixes []string) {
	part := figure[int64](1_000, 20_000)
	file := newFile(t)
	var all []both
	for range 2 {
		all = append(all, startBoth(t, serveFile(t, file)))
	}
	for range figure(3, 10) {
		for _, l := range all {
			l.await(t, part)
		}
		for _, suffix := range suffixes {
			if err := os.Remove(file + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) { // servers that notice remove them too
				t.Fatal(err)
			}
		}
		if len(all) == 2 {
			all = append(all, startBoth(t, serveFile(t, file)))
		}
	}
	for _, l := range all {
		l.await(t, part)
	}
	for _, l := range all {
		l.stop()
	}
	for _, l := range all[1:] {
		all[0].join(l)
	}
	all[0].check(t)
	if out := leafCommand(t, "tag", "list", "--store", "sqlite:"+file); !strings.Contains(out, "order") {
		t.Errorf("the database holds\n%s", out)
	}
}

// both are clients of one server that ask for the IDs of a tag and for time-based ones.
type both [2]*takes

func startBoth(t testing.TB, s *server) both {
	t.Helper()
	pick := func(int) *server { return s }
	return both{startTakesOf(t, "segment", "order", 2, 20, pick), startTakes(t, 1, 200, pick)}
}

func (b both) counts() (n [2]int64) {
	for i, l := range b {
		n[i] = l.count.Load()
	}
	return n
}

// await returns when n more IDs of each kind have come in.
func (b both) await(t testing.TB, n int64) {
	t.Helper()
	before := b.counts()
	for i, l := range b {
		l.await(t, before[i]+n)
	}
}

func (b both) stop() {
	for _, l := range b {
		l.stop()
	}
}

// join adds the IDs of another server's clients.
func (b both) join(other both) {
	for i, l := range b {
		l.add(other[i].seen.Sorted()...)
	}
}

func (b both) check(t testing.TB) {
	t.Helper()
	for i, l := range b {
		if err := l.seen.Check(); err != nil {
			t.Errorf("%s: %v", [2]string{"tag", "time-based"}[i], err)
		}
	}
	t.Logf("%v IDs compared", b.counts())
}

// newFile makes an SQLite file with a tag of small steps and worker IDs.
func newFile(t testing.TB) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ids.db")
	tags := []segment.Tag{{Name: "order", MaxID: 1, Step: 50}}
	initBoth(t, "sqlite:"+file, tags)
	return file
}

// serveFile starts a server on an SQLite file, with little in memory, by a command.
func serveFile(t testing.TB, file string, by ...string) *server {
	t.Helper()
	args := serveArgs([]string{"--config", config(t, "leaf.yaml", "segment: {max_stock: 200}\n"),
		"--data", filepath.Join(t.TempDir(), "data"), "--store", "sqlite:" + file})
	return serveBy(t, append(append(by, leafBinary), args...)...)
}
