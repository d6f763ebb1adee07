package datadir_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/datadir"
)

func TestStateTellsFileFromCopy(t *testing.T) {
	path := t.TempDir()
	file := filepath.Join(path, "worker-0")
	first := identityOf(t, file)
	if first == "" {
		t.Fatalf("nothing tells a file in %s from its copies", path)
	}
	if again := identityOf(t, file); again != first {
		t.Errorf("the same file is %q and %q", first, again)
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+"-old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if identityOf(t, file) == first {
		t.Error("a copy in the place of the file has its identity")
	}
}

func identityOf(t *testing.T, file string) string {
	t.Helper()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	id, err := datadir.Identity(f)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestLockOfAnotherFile(t *testing.T) {
	path := t.TempDir()
	a, b := open(t, path), open(t, path)
	f, err := a.Lock("static-7")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Lock("static-7"); err == nil || !strings.Contains(err.Error(), "static-7 is in use by another process") {
		t.Errorf("got error %v", err)
	}
	if g, err := b.Lock("static-8"); err != nil {
		t.Error(err)
	} else {
		g.Close()
	}
	f.Close()
	g, err := b.Lock("static-7")
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
}

func TestStateOfSlot(t *testing.T) {
	path := t.TempDir()
	dir := open(t, path)
	if state, err := dir.State("memory"); err != nil || state.Notice() != nil {
		t.Errorf("a new file: %v, %v", state.Notice(), err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(path, "worker-0"), []byte("leaf-slot 9 1 1 1\n"+strings.Repeat("\x00", 9000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, path).State("memory"); err == nil || !strings.Contains(err.Error(), "worker-0") {
		t.Errorf("a newer file: %v", err)
	}
}
