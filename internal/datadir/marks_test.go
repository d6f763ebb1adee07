package datadir_test

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-id/leaf/internal/datadir"
	"github.com/leaf-id/leaf/segment"
)

func marksOf(t *testing.T, dir *datadir.Dir, store string) *datadir.Marks {
	t.Helper()
	marks, err := dir.Marks(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	return marks
}

func remember(t *testing.T, marks *datadir.Marks, tag, source string, high int64, server string) {
	t.Helper()
	if err := marks.Remember(tag, source, segment.Mark{High: high, Server: server}); err != nil {
		t.Fatal(err)
	}
}

func recalls(t *testing.T, marks *datadir.Marks, tag string, want map[string]segment.Mark) {
	t.Helper()
	if diff := cmp.Diff(want, marks.Recall(tag)); diff != "" {
		t.Errorf("recalled of %q (-want +got):\n%s", tag, diff)
	}
}

// high is what to recall of a counter with one source.
func high(id int64) map[string]segment.Mark { return map[string]segment.Mark{"": {High: id}} }

func none() map[string]segment.Mark { return map[string]segment.Mark{} }

var oddStrings = []string{
	"", "order", "订单", "🍃", `"`, `\`, "'", "`", " a ", "100%", "a\nb", "\x00", "\xff\xfe", "mark \"a\"", "\u2028", strings.Repeat("界", 128),
}

func TestMarksComeBack(t *testing.T) {
	path := t.TempDir()
	for run := range int64(3) {
		dir := open(t, path)
		marks, other := marksOf(t, dir, "mysql://host/db"), marksOf(t, dir, "other")
		for i, s := range oddStrings {
			want := none()
			if run > 0 {
				want = map[string]segment.Mark{s: {High: int64(i) + run - 1, Server: s}, "b": {High: math.MaxInt64}}
			}
			recalls(t, marks, s, want)
			recalls(t, other, s, none())
			remember(t, marks, s, s, int64(i)+run, s)
			remember(t, marks, s, "b", math.MaxInt64, "")
		}
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMarksLastWriteWins(t *testing.T) {
	path := t.TempDir()
	dir := open(t, path)
	marks := marksOf(t, dir, "store")
	for _, id := range []int64{2001, 4001, 2500} {
		remember(t, marks, "order", "", id, "")
		recalls(t, marks, "order", high(id))
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	recalls(t, marksOf(t, open(t, path), "store"), "order", high(2500))
}

func TestMarksOfOtherSlots(t *testing.T) {
	path := t.TempDir()
	a, b := marksOf(t, open(t, path), "store"), marksOf(t, open(t, path), "store")
	remember(t, a, "order", "", 2001, "")
	recalls(t, b, "order", high(2001))
	remember(t, b, "order", "", 4001, "")
	recalls(t, a, "order", high(4001))
	remember(t, b, "order", "", 2500, "") // a clean stop
	recalls(t, a, "order", high(2500))
	remember(t, b, "order", "east", 9, "s2")
	recalls(t, a, "order", map[string]segment.Mark{"": {High: 2500}, "east": {High: 9, Server: "s2"}})
}

func TestMarksForgetHoldsForAllSlots(t *testing.T) {
	path := t.TempDir()
	first, second := open(t, path), open(t, path)
	a, b := marksOf(t, first, "store"), marksOf(t, second, "store")
	other := marksOf(t, second, "other")
	for _, m := range []*datadir.Marks{a, b, other} {
		remember(t, m, "order", "", 4001, "")
		remember(t, m, "user", "", 7, "")
	}
	if err := a.Forget("order"); err != nil {
		t.Fatal(err)
	}
	recalls(t, a, "order", none())
	recalls(t, b, "order", none())
	recalls(t, other, "order", high(4001))
	recalls(t, b, "user", high(7))
	for _, dir := range []*datadir.Dir{first, second} {
		if err := dir.Close(); err != nil {
			t.Fatal(err)
		}
	}
	a = marksOf(t, open(t, path), "store")
	recalls(t, a, "order", none())
	remember(t, a, "order", "", 11, "")
	recalls(t, a, "order", high(11))
}

func TestMarksForgetUnknown(t *testing.T) {
	marks := marksOf(t, open(t, t.TempDir()), "store")
	if err := marks.Forget("nothing"); err != nil {
		t.Fatal(err)
	}
	recalls(t, marks, "nothing", none())
}

// TestMarksDamaged opens files that a crash, a disk or a person has been at.
func TestMarksDamaged(t *testing.T) {
	const header = "leaf-marks 1 x\n"
	const good, better = "mark \"store\" \"order\" \"\" 2001 \"\"\n", "mark \"store\" \"order\" \"\" 4001 \"\"\n"
	for _, c := range []struct {
		name, content string
		want          map[string]segment.Mark
		logged        string
	}{
		{"empty", "", none(), ""},
		{"header only", header, none(), ""},
		{"torn last line", header + good + better[:20], high(2001), ""},
		{"last line without its end", header + good + strings.TrimSuffix(better, "\n"), high(2001), ""},
		{"corrupt line", header + good + "mark \"store\n" + better, high(4001), "lines=1"},
		{"corrupt lines", header + "x\n\n\x00\x00\n" + good + "mark \"store\" \"order\" \"\" -1 \"\"\n", high(2001), "lines=3"},
		{"forget", header + good + "forget \"store\" \"order\"\n", none(), ""},
		{"forget and again", header + better + "forget \"store\" \"order\"\n" + good, high(2001), ""},
	} {
		for _, slot := range []string{"marks-0", "marks-5"} {
			t.Run(c.name+" "+slot, func(t *testing.T) {
				path := t.TempDir()
				if err := os.WriteFile(filepath.Join(path, slot), []byte(c.content), 0o600); err != nil {
					t.Fatal(err)
				}
				var log strings.Builder
				dir := open(t, path)
				marks, err := dir.Marks("store", slog.New(slog.NewTextHandler(&log, nil)))
				if err != nil {
					t.Fatal(err)
				}
				recalls(t, marks, "order", c.want)
				if c.logged == "" && log.Len() > 0 || !strings.Contains(log.String(), c.logged) {
					t.Errorf("logged %q, want %q in it", log.String(), c.logged)
				}
				if err := marks.Forget("order"); err != nil {
					t.Fatal(err)
				}
				recalls(t, marks, "order", none())
				remember(t, marks, "order", "", 6001, "")
				recalls(t, marks, "order", high(6001))
			})
		}
	}
}

func TestMarksRefused(t *testing.T) {
	for _, c := range []struct{ header, want string }{
		{"leaf-marks 2 x\nanything\n", "newer release"},
		{"leaf-marks 0 x\n", "makes no sense"},
		{"leaf-marks one x\n", "makes no sense"},
		{"leaf-marks\n", "not a file of marks"},
		{"\nmark", "not a file of marks"},
		{"a diary\n", "not a file of marks"},
		{"leaf-marks 1 x", "does not end"},
	} {
		for _, slot := range []string{"marks-0", "marks-3"} {
			path := t.TempDir()
			file := filepath.Join(path, slot)
			if err := os.WriteFile(file, []byte(c.header), 0o600); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				_, err := open(t, path).Marks("store", nil)
				if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), file) {
					t.Errorf("%q in %s: got error %v, want one about %q and the file", c.header, slot, err, c.want)
				}
			}
			if got, err := os.ReadFile(file); err != nil || string(got) != c.header {
				t.Errorf("the refused file was changed: %q, %v", got, err)
			}
		}
	}
}

func TestMarksIgnoresOtherFiles(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{"marks-", "marks-x", "marks-1.new", "marks-01", "marks", "leaf.db"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("something else\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	recalls(t, marksOf(t, open(t, path), "store"), "order", none())
}

func TestMarksClosed(t *testing.T) {
	dir := open(t, t.TempDir())
	marks := marksOf(t, dir, "store")
	remember(t, marks, "order", "", 5, "")
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := dir.Marks("store", nil)
	for what, err := range map[string]error{"Marks": err, "Remember": marks.Remember("order", "", segment.Mark{High: 9}), "Forget": marks.Forget("order")} {
		if !errors.Is(err, os.ErrClosed) {
			t.Errorf("%s after Close: got error %v, want os.ErrClosed", what, err)
		}
	}
	recalls(t, marks, "order", high(5))
	if err := marks.Remember("order", "", segment.Mark{High: -1}); err == nil {
		t.Error("a negative mark was taken")
	}
}

// TestMarksCompact has two slots write far more than they know, while each reads
// and voids what the other knows.
func TestMarksCompact(t *testing.T) {
	path := t.TempDir()
	dirs := []*datadir.Dir{open(t, path), open(t, path)}
	var wg sync.WaitGroup
	const tags, rounds = 100, 600
	for slot, dir := range dirs {
		marks := marksOf(t, dir, "store")
		wg.Go(func() {
			for i := range int64(tags * rounds) {
				tag := fmt.Sprintf("tag-%d-%d", slot, i%tags)
				if err := marks.Remember(tag, "", segment.Mark{High: i}); err != nil {
					t.Error(err)
					return
				}
				if i%1000 == 0 {
					if err := marks.Forget(fmt.Sprintf("tag-%d-%d", 1-slot, tags/2)); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	again := marksOf(t, open(t, path), "store")
	for slot := range dirs {
		info, err := os.Stat(filepath.Join(path, fmt.Sprint("marks-", slot)))
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 2<<20 { // 1 MiB, and what comes in while the other holds the lock
			t.Errorf("the file of slot %d has grown to %d bytes", slot, info.Size())
		}
		for i := range int64(tags - 1) {
			if i != tags/2 {
				recalls(t, again, fmt.Sprintf("tag-%d-%d", slot, i), high(tags*(rounds-1)+i))
			}
		}
	}
}

func BenchmarkRemember(b *testing.B) {
	dir, err := datadir.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer dir.Close()
	marks, err := dir.Marks("store", nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := int64(0); b.Loop(); i++ {
		if err := marks.Remember("order", "", segment.Mark{High: i, Server: "s"}); err != nil {
			b.Fatal(err)
		}
	}
}
