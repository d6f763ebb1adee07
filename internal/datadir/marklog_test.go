package datadir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// openMarks opens the marks of the next slot of the directory.
func openMarks(t *testing.T, path string) *Marks {
	t.Helper()
	dir, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	marks, err := dir.Marks("store", nil)
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

func remember(t *testing.T, m *Marks, tag string, high int64) {
	t.Helper()
	if err := m.Remember(tag, "", segment.Mark{High: high}); err != nil {
		t.Fatal(err)
	}
}

func recalls(t *testing.T, m *Marks, tag string, want int64) {
	t.Helper()
	if got := m.Recall(tag)[""].High; got != want {
		t.Errorf("slot %d recalls %d of %q, want %d", m.log.slot, got, tag, want)
	}
}

func sizeOf(t *testing.T, m *Marks) int64 {
	t.Helper()
	info, err := os.Stat(m.log.name(m.log.slot))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// TestCompactKeepsWhatOthersWrote compacts a file that another process has read,
// and appended to, since it was last read here.
func TestCompactKeepsWhatOthersWrote(t *testing.T) {
	path := t.TempDir()
	a, b := openMarks(t, path), openMarks(t, path)
	for high := range int64(100) {
		remember(t, a, "gone", high)
		remember(t, a, "order", high)
	}
	recalls(t, b, "order", 99)
	if err := b.Forget("gone"); err != nil {
		t.Fatal(err)
	}
	before := sizeOf(t, a)
	a.log.limit = 0
	remember(t, a, "order", 100)
	if after := sizeOf(t, a); after >= before/compactFactor {
		t.Fatalf("the file has %d bytes, %d before", after, before)
	}
	for high := range int64(200) {
		remember(t, a, "user", high)
	}
	for _, m := range []*Marks{a, b} {
		recalls(t, m, "order", 100)
		recalls(t, m, "user", 199)
		recalls(t, m, "gone", 0)
	}
}

// TestLockIsRespected holds the lock that another process would hold while it
// writes to foreign files, or replaces its own.
func TestLockIsRespected(t *testing.T) {
	path := t.TempDir()
	m := openMarks(t, path)
	for high := range int64(100) {
		remember(t, m, "order", high)
	}
	lock, err := lockFile(filepath.Join(path, "marks.lock"))
	if err != nil {
		t.Fatal(err)
	}
	before := sizeOf(t, m)
	m.log.limit, m.log.patience = 0, 0
	remember(t, m, "order", 100)
	if after := sizeOf(t, m); after < before {
		t.Errorf("compacted to %d bytes under another's lock", after)
	}
	if err := m.Forget("order"); !errors.Is(err, errLocked) {
		t.Errorf("forget under another's lock: got error %v", err)
	}
	recalls(t, m, "order", 100)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Forget("order"); err != nil {
		t.Error(err)
	}
	recalls(t, m, "order", 0)
}

// TestCompactFails remembers all the same when the file cannot be written anew.
func TestCompactFails(t *testing.T) {
	path := t.TempDir()
	m := openMarks(t, path)
	if err := os.Mkdir(m.log.name(m.log.slot)+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	for high := range int64(100) {
		m.log.limit = 0
		remember(t, m, "order", high)
	}
	recalls(t, m, "order", 99)
}

// TestFullDisk writes to the device that is always full, and then to a disk with
// room again.
func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only Linux has the device
	}
	marks := openMarks(t, t.TempDir())
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	if err := marks.Remember("order", "", segment.Mark{High: 5}); err != nil {
		t.Fatal(err)
	}
	disk := marks.log.file
	marks.log.file = full
	if err := marks.Remember("order", "", segment.Mark{High: 9}); err == nil {
		t.Error("remembering on a full disk succeeded")
	}
	if err := marks.Forget("order"); err == nil {
		t.Error("forgetting on a full disk succeeded")
	}
	marks.log.file = disk
	if got := marks.Recall("order")[""].High; got != 5 {
		t.Errorf("recalled %d after failed writes, want 5", got)
	}
}

// TestTornWrite cuts a line off, as a disk that fills up does, and goes on.
func TestTornWrite(t *testing.T) {
	marks := openMarks(t, t.TempDir())
	if _, err := marks.log.file.WriteString("mark \"store\" \"ord"); err != nil {
		t.Fatal(err)
	}
	marks.log.torn = true
	if err := marks.Remember("order", "", segment.Mark{High: 9}); err != nil {
		t.Fatal(err)
	}
	if got := marks.Recall("order")[""].High; got != 9 {
		t.Errorf("recalled %d behind a torn line, want 9", got)
	}
}

// TestForgetHoldsUpNobody waits for the lock of the files while another holds the
// mutex, which must be asked for later: every Remember needs it.
func TestForgetHoldsUpNobody(t *testing.T) {
	path := t.TempDir()
	m := openMarks(t, path)
	lock, err := lockFile(filepath.Join(path, "marks.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	m.log.patience = 0
	m.log.mu.Lock()
	defer m.log.mu.Unlock()
	done := make(chan error, 1)
	go func() { done <- m.Forget("order") }()
	select {
	case err := <-done:
		if !errors.Is(err, errLocked) {
			t.Errorf("Forget: %v, want errLocked", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("Forget takes the mutex before it has the lock of the files")
	}
}

func TestTagsAreCounted(t *testing.T) {
	path := t.TempDir()
	a, b := openMarks(t, path), openMarks(t, path)
	other := &Marks{store: "other", log: a.log}
	for _, tag := range []string{"order", "user", "order"} {
		remember(t, a, tag, 1)
	}
	remember(t, b, "item", 1)
	remember(t, other, "else", 1)
	if err := a.Forget("user"); err != nil {
		t.Fatal(err)
	}
	c := openMarks(t, path)
	if got := c.Tags(); got != 2 {
		t.Errorf("%d tags, want order and item", got)
	}
}
