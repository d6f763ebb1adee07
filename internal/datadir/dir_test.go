package datadir_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/segment"
)

// childEnv makes the test binary the second process on a directory.
const childEnv = "LEAF_DATADIR_TEST_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		child(path)
		return
	}
	os.Exit(m.Run())
}

// child says which slot it has; for each line that it then reads it remembers the
// tag "order" one ID higher, and says so.
func child(path string) {
	dir, err := datadir.Open(path)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	marks, err := dir.Memory("store", nil)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("slot", dir.Slot())
	for high, in := int64(1), bufio.NewScanner(os.Stdin); in.Scan(); high++ {
		if err := marks.Remember("order", "", segment.Mark{High: high}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("high", high)
	}
}

// A process is a running child.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(t *testing.T, path string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{cmd, in, bufio.NewScanner(out)}
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// expect reads the next line of the child's.
func (p *process) expect(t *testing.T, want string) {
	t.Helper()
	if !p.out.Scan() || p.out.Text() != want {
		t.Fatalf("the child said %q, want %q", p.out.Text(), want)
	}
}

func open(t *testing.T, path string) *datadir.Dir {
	t.Helper()
	dir, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestOpenMakesDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "leaf-data")
	dir := open(t, path)
	if dir.Slot() != 0 {
		t.Errorf("got slot %d", dir.Slot())
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, want 0700", info.Mode().Perm())
	}
}

func TestOpenTakesFirstFreeSlot(t *testing.T) {
	path := t.TempDir()
	dirs := []*datadir.Dir{open(t, path), open(t, path), open(t, path)}
	for i, dir := range dirs {
		if dir.Slot() != i {
			t.Errorf("process %d got slot %d", i, dir.Slot())
		}
	}
	if err := dirs[1].Close(); err != nil {
		t.Fatal(err)
	}
	if slot := open(t, path).Slot(); slot != 1 {
		t.Errorf("got slot %d after slot 1 was freed", slot)
	}
	if err := dirs[1].Close(); err != nil {
		t.Errorf("closing twice: %v", err)
	}
}

func TestOpenLeavesSlotFilesAlone(t *testing.T) {
	path := t.TempDir()
	file := filepath.Join(path, "worker-0")
	if err := os.WriteFile(file, []byte("a lease"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(content, []byte("a lease")) || !os.SameFile(before, after) {
		t.Errorf("the slot's file was changed: %q, %v", content, err)
	}
}

func TestOpenFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "odd", "worker-0"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below"), filepath.Join(dir, "odd")} {
		if _, err := datadir.Open(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("open %s: got error %v, want one that names it", path, err)
		}
	}
}

func TestOpenBesideAnotherProcess(t *testing.T) {
	path := t.TempDir()
	first := start(t, path)
	first.expect(t, "slot 0")
	if slot := open(t, path).Slot(); slot != 1 {
		t.Errorf("got slot %d beside the process in slot 0", slot)
	}
	first.kill()
	if slot := open(t, path).Slot(); slot != 0 {
		t.Errorf("got slot %d after the process in slot 0 was killed", slot)
	}
	start(t, path).expect(t, "slot 2")
}

// Each process has a memory of its own for each store.
func TestMemoryOfSlots(t *testing.T) {
	path := t.TempDir()
	first, second := open(t, path), open(t, path)
	for i, d := range []*datadir.Dir{first, first, second, second} {
		m, err := d.Memory(fmt.Sprint("store ", i%2), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Recall("order"); len(got) > 0 {
			t.Errorf("memory %d recalls %v of another", i, got)
		}
		if err := m.Remember("order", "", segment.Mark{High: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	again, err := first.Memory("store 1", nil)
	if err != nil || again.Recall("order")[""].High != 1 {
		t.Errorf("recalled %v, %v", again.Recall("order"), err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Memory("store 0", nil); !errors.Is(err, os.ErrClosed) {
		t.Errorf("opened in a closed directory: %v", err)
	}
}

// What ended processes of other slots knew is taken over, what running ones know is not.
func TestMemoryOfEndedSlots(t *testing.T) {
	path := t.TempDir()
	remember := func(m *segment.FileMemory, tag string, high int64) {
		t.Helper()
		if err := m.Remember(tag, "", segment.Mark{High: high}); err != nil {
			t.Fatal(err)
		}
	}
	memory := func(d *datadir.Dir, store string) *segment.FileMemory {
		t.Helper()
		m, err := d.Memory(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	dirs := []*datadir.Dir{open(t, path), open(t, path), open(t, path)}
	for slot, d := range dirs {
		remember(memory(d, "store"), "order", []int64{10, 30, 50}[slot])
	}
	remember(memory(dirs[1], "store"), "user", 7)
	remember(memory(dirs[1], "other"), "order", 99)
	for _, d := range dirs[:2] {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	again := open(t, path)
	m := memory(again, "store")
	if order, user := m.Recall("order")[""].High, m.Recall("user")[""].High; again.Slot() != 0 || order != 30 || user != 7 {
		t.Errorf("slot %d recalls %d and %d, want 30 of the ended slot, not 50 of the running one, and 7", again.Slot(), order, user)
	}
	if err := m.Forget("user"); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	again = open(t, path)
	if got := memory(again, "store"); got.Recall("order")[""].High != 30 || len(got.Recall("user")) != 0 {
		t.Errorf("recalled %v and %v, want 30 and nothing", got.Recall("order"), got.Recall("user"))
	}
}

func TestMemorySurvivesKill(t *testing.T) {
	path := t.TempDir()
	p := start(t, path)
	p.expect(t, "slot 0")
	for high := 1; high <= 50; high++ {
		fmt.Fprintln(p.in)
		p.expect(t, fmt.Sprint("high ", high))
	}
	p.kill()
	marks, err := open(t, path).Memory("store", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := marks.Recall("order")[""].High; got != 50 {
		t.Errorf("recalled %d after a kill, want 50", got)
	}
}
