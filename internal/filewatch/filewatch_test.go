package filewatch_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/filewatch"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestChanged(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	write(t, a, "one")
	w := filewatch.New(a, b)
	want := func(what string, changed ...string) {
		t.Helper()
		if got := w.Changed(a, b); !slices.Equal(got, changed) {
			t.Errorf("%s: %v changed, want %v", what, got, changed)
		}
		if quiet := len(changed) > 0 || what == "nothing has happened" || what == "it was reported"; w.Stable() != quiet {
			t.Errorf("%s: stable: %v, want %v", what, w.Stable(), quiet)
		}
	}
	want("nothing has happened")
	write(t, a, "one, two")
	want("it may be half written")
	write(t, a, "one, two, three")
	want("it still is")
	want("it stands still", a)
	want("it was reported")

	if err := os.Chtimes(a, time.Time{}, time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want("a new time")
	want("a new time, again", a)

	write(t, b, "made")
	want("made")
	want("made, again", b)
	if err := os.Remove(b); err != nil {
		t.Fatal(err)
	}
	want("removed")
	want("removed, again", b)
}

// Kubernetes swaps a link to a directory; times and sizes may be equal.
func TestSwappedLink(t *testing.T) {
	dir := t.TempDir()
	at := time.Now().Add(-time.Hour)
	for _, version := range []string{"v1", "v2"} {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, version, "tokens.yaml")
		write(t, file, version)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	link := func(name, target string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..data", "v1")
	link("tokens.yaml", filepath.Join("..data", "tokens.yaml"))
	path := filepath.Join(dir, "tokens.yaml")
	w := filewatch.New(path)
	link("..new", "v2")
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	w.Changed(path)
	if got := w.Changed(path); len(got) != 1 {
		t.Errorf("%v changed", got)
	}
}
