package segment

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func openMemory(t *testing.T, path string) *FileMemory {
	t.Helper()
	m, err := OpenMemory(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func remember(t *testing.T, m Memory, tag, source string, high int64, server string) {
	t.Helper()
	if err := m.Remember(tag, source, Mark{High: high, Server: server}); err != nil {
		t.Fatal(err)
	}
}

func recalls(t *testing.T, m Memory, tag string, want map[string]Mark) {
	t.Helper()
	if diff := cmp.Diff(want, m.Recall(tag)); diff != "" {
		t.Errorf("recalled of %q (-want +got):\n%s", tag, diff)
	}
}

// upTo is what to recall of a counter with one source.
func upTo(high int64) map[string]Mark { return map[string]Mark{"": {High: high}} }

func fileSize(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

var oddStrings = []string{
	"", "order", "订单", "🍃", `"`, `\`, "'", "`", " a ", "100%", "a\nb", "\x00", "\xff\xfe", "mark \"a\"", "\u2028", strings.Repeat("界", 128),
}

func TestMemoryComesBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	for run := range int64(3) {
		m := openMemory(t, path)
		for i, s := range oddStrings {
			var want map[string]Mark
			if run > 0 {
				want = map[string]Mark{s: {High: int64(i) + run - 1, Server: s}, "b": {High: math.MaxInt64}}
			}
			recalls(t, m, s, want)
			remember(t, m, s, s, int64(i)+run, s)
			remember(t, m, s, "b", math.MaxInt64, "")
		}
		if n := m.Tags(); n != len(oddStrings) {
			t.Errorf("%d tags, want %d", n, len(oddStrings))
		}
		if err := m.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMemoryLastWriteWins(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	m := openMemory(t, path)
	for _, high := range []int64{2001, 4001, 2500} {
		remember(t, m, "order", "", high, "")
		recalls(t, m, "order", upTo(high))
	}
	m.Close()
	m = openMemory(t, path)
	recalls(t, m, "order", upTo(2500))
	m.Recall("order")[""] = Mark{High: 1}
	recalls(t, m, "order", upTo(2500))
}

func TestMemoryForgets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	m := openMemory(t, path)
	remember(t, m, "order", "", 4001, "")
	remember(t, m, "order", "east", 9, "s2")
	remember(t, m, "user", "", 7, "")
	for _, tag := range []string{"order", "nothing"} {
		if err := m.Forget(tag); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		recalls(t, m, "order", nil)
		recalls(t, m, "user", upTo(7))
		m.Close()
		m = openMemory(t, path)
	}
	remember(t, m, "order", "", 11, "")
	recalls(t, m, "order", upTo(11))
}

// Two processes on one file would overwrite each other's marks.
func TestMemoryIsLocked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	first := openMemory(t, path)
	for round := range 2 {
		if second, err := OpenMemory(path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("round %d: opened twice: %v, %v", round, second, err)
		}
		fill(t, first, "order") // until the file is rewritten, which must not lose the lock
	}
	first.Close()
	recalls(t, openMemory(t, path), "order", first.Recall("order"))
}

// A process that opened the file just before its rewrite must not take the old file, whose lock is
// free, for the memory: later marks there would be lost.
func TestMemoryIsLockedWhileRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	first := openMemory(t, path)
	second, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	fill(t, first, "order")
	if err := lockAt(second, path); err == nil {
		t.Error("locked a file that was replaced")
	}
}

// fill remembers tag until the file has been rewritten.
func fill(t *testing.T, m *FileMemory, tag string) {
	t.Helper()
	for high, before := int64(1), m.file; m.file == before; high++ {
		if m.size > 4*minRewrite {
			t.Fatalf("a file of %d bytes is not rewritten", m.size)
		}
		remember(t, m, tag, "", high, longServer)
	}
}

// longServer makes a file grow quickly.
var longServer = strings.Repeat("s", 4096)

// TestMemoryOfDamagedFiles opens files that a crash, a disk or a person has changed.
func TestMemoryOfDamagedFiles(t *testing.T) {
	good, better := markLine("order", "", Mark{High: 2001}), markLine("order", "", Mark{High: 4001})
	flipped := strings.Replace(better, "4001", "9001", 1)
	for name, c := range map[string]struct {
		content string
		want    map[string]Mark
		skipped int
	}{
		"empty":                     {"", nil, 0},
		"half a header":             {memoryHeader[:8], nil, 0},
		"header only":               {memoryHeader, nil, 0},
		"torn last line":            {memoryHeader + good + better[:20], upTo(2001), 0},
		"last line without its end": {memoryHeader + good + strings.TrimSuffix(better, "\n"), upTo(2001), 0},
		"flipped digit":             {memoryHeader + good + flipped, upTo(2001), 1},
		"cut line":                  {memoryHeader + good[:12] + "\n" + better, upTo(4001), 1},
		"garbage":                   {memoryHeader + "x\n\n\x00\x00\n" + good + "00000000 \"a\" \"\" 1 \"\"\n", upTo(2001), 4},
		"zeros":                     {memoryHeader + good + strings.Repeat("\x00", 4096), upTo(2001), 0},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "counters")
			if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
				t.Fatal(err)
			}
			var log strings.Builder
			m, err := OpenMemory(path, slog.New(slog.NewTextHandler(&log, nil)))
			if err != nil {
				t.Fatal(err)
			}
			recalls(t, m, "order", c.want)
			if want := fmt.Sprintf("lines=%d", c.skipped); (c.skipped == 0) != (log.Len() == 0) || c.skipped > 0 && !strings.Contains(log.String(), want) {
				t.Errorf("logged %q, want %s in it", log.String(), want)
			}
			remember(t, m, "order", "", 6001, "")
			remember(t, m, "user", "", 1, "")
			m.Close()
			m = openMemory(t, path)
			recalls(t, m, "order", upTo(6001))
			recalls(t, m, "user", upTo(1))
		})
	}
}

// After a change of any byte of a mark, or a cut at any place, only real marks return.
func TestMemoryOfAnyDamage(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	first := markLine("order", "", Mark{High: 2001})
	content := memoryHeader + first + markLine("order", "", Mark{High: 4001, Server: "s"})
	reopen := func(damaged string) Mark {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := OpenMemory(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer m.file.Close() // not m: a sync for each takes long
		return m.Recall("order")[""]
	}
	for i := len(memoryHeader); i < len(content); i++ {
		before, after := Mark{}, Mark{High: 4001, Server: "s"}
		if i >= len(memoryHeader+first) {
			before = Mark{High: 2001}
		}
		if got := reopen(content[:i]); got != before {
			t.Errorf("cut off after %d bytes: recalled %+v, want %+v", i, got, before)
		}
		for _, bit := range []byte{1, 2, 4, 8, 16, 32, 64, 128} {
			damaged := []byte(content)
			damaged[i] ^= bit
			if got := reopen(string(damaged)); got != before && got != after {
				t.Errorf("%q for %q: recalled %+v", damaged[i], content[i], got)
			}
		}
	}
}

func TestMemoryRefusesOtherFiles(t *testing.T) {
	for content, want := range map[string]string{
		"leaf-counters 2\nanything\n":                  "newer release",
		"leaf-counters 0\n":                            "move it away",
		"leaf-counters one\n":                          "move it away",
		"a diary\n":                                    "move it away",
		strings.Repeat("\x00", 9000):                   "move it away",
		"leaf-marks 1 x\nmark \"s\" \"t\" \"\" 1 \"\"": "move it away",
	} {
		path := filepath.Join(t.TempDir(), "counters")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err := OpenMemory(path, nil)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%.20q: got error %v, want one about %q and the file", content, err, want)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("the refused file was changed: %.20q, %v", got, err)
		}
	}
}

func TestMemoryFails(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	if _, err := OpenMemory(filepath.Join(path, "below"), nil); err == nil {
		t.Error("opened a file in a folder that is not there")
	}
	m := openMemory(t, path)
	if err := m.Remember("order", "", Mark{High: -1}); err == nil {
		t.Error("a negative mark was taken")
	}
	remember(t, m, "order", "", 5, "")
	m.Close()
	for what, err := range map[string]error{"Remember": m.Remember("order", "", Mark{High: 9}), "Forget": m.Forget("order")} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after Close: got error %v, want os.ErrClosed", what, err)
		}
	}
	recalls(t, m, "order", upTo(5))
}

// A full disk costs only the marks of that time.
func TestMemoryOnFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" {
		return // only Linux has the device
	}
	path := filepath.Join(t.TempDir(), "counters")
	m := openMemory(t, path)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	remember(t, m, "order", "", 5, "")
	disk := m.file
	m.file = full
	if err := m.Remember("order", "", Mark{High: 9}); err == nil {
		t.Error("remembering on a full disk succeeded")
	}
	if err := m.Forget("order"); err == nil {
		t.Error("forgetting on a full disk succeeded")
	}
	m.file = disk
	recalls(t, m, "order", upTo(5))
	if _, err := m.file.WriteAt([]byte(markLine("order", "", Mark{High: 77, Server: "long"})[:30]), m.size); err != nil { // an incomplete write
		t.Fatal(err)
	}
	remember(t, m, "user", "", 3, "")
	m.Close()
	m = openMemory(t, path)
	recalls(t, m, "order", upTo(5))
	recalls(t, m, "user", upTo(3))
}

// The file is rewritten when it is four times as long as its marks, not earlier.
func TestMemoryRewrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	m := openMemory(t, path)
	const tags = 300 // whose marks take more than minRewrite
	for round := range int64(9) {
		before := m.file
		for i := range tags {
			remember(t, m, fmt.Sprintf("tag-%03d", i), "", 1000+round, longServer)
		}
		if got, want := m.file != before, round == rewriteFactor || round == 2*rewriteFactor-1; got != want {
			t.Errorf("round %d: rewritten %t, want %t", round, got, want)
		}
	}
	m.Close()
	m = openMemory(t, path)
	for i := range tags {
		recalls(t, m, fmt.Sprintf("tag-%03d", i), map[string]Mark{"": {High: 1008, Server: longServer}})
	}
}

// A file that cannot be rewritten still serves, and not every mark tries again.
func TestMemoryIsNotRewritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "counters")
	var log strings.Builder
	m, err := OpenMemory(path, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path+".new", 0o700); err != nil {
		t.Fatal(err)
	}
	high := int64(0)
	for ; m.size < 3*minRewrite; high++ {
		remember(t, m, "order", "", high, longServer)
	}
	if n := strings.Count(log.String(), "rewrite the memory"); n != 2 {
		t.Errorf("%d attempts in a file of three times the size, want 2", n)
	}
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
	remember(t, m, "user", "", 7, "")
	fill(t, m, "order")
	if size := fileSize(t, path); size > minRewrite {
		t.Errorf("the file still has %d bytes", size)
	}
	m.Close()
	recalls(t, openMemory(t, path), "user", upTo(7))
}

// Many new tags at once must not cause a rewrite.
func TestMemoryOfManyTags(t *testing.T) {
	const tags = 100_000
	path := filepath.Join(t.TempDir(), "counters")
	m := openMemory(t, path)
	before := m.file
	for i := range int64(tags) {
		remember(t, m, fmt.Sprint("tag-", i), "", i, "server")
	}
	if m.file != before {
		t.Error("rewritten, which made it no shorter")
	}
	m.Close()
	if m = openMemory(t, path); m.Tags() != tags {
		t.Errorf("%d tags came back, want %d", m.Tags(), tags)
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add("tag", "source", "server", int64(7), 3)
	f.Add("\xff\"\\\n", "界", "", int64(1<<62), 40)
	f.Fuzz(func(t *testing.T, tag, source, server string, high int64, cut int) {
		line := markLine(tag, source, Mark{high, server})
		gotTag, gotSource, got, ok := parseMark(line)
		if !ok || gotTag != tag || gotSource != source || got != (Mark{high, server}) || strings.Count(line, "\n") != 1 {
			t.Fatalf("%q came back as %q, %q, %+v, %t", line, gotTag, gotSource, got, ok)
		}
		if cut = max(cut, -cut) % len(line); cut >= 0 {
			if _, _, _, ok := parseMark(line[:cut]); ok {
				t.Fatalf("%q is cut off but reads as a mark", line[:cut])
			}
		}
	})
}

func BenchmarkRemember(b *testing.B) {
	m, err := OpenMemory(filepath.Join(b.TempDir(), "counters"), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	for i := int64(0); b.Loop(); i++ {
		if err := m.Remember("order", "", Mark{High: i, Server: "s"}); err != nil {
			b.Fatal(err)
		}
	}
}
