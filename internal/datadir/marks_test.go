package datadir_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/filelock"
	"github.com/leaf-id/leaf/segment"
)

const marksOfSlot0 = `leaf-marks 1 JX4BEZ3QPU7SZVQXJ5YQXG5KNE
mark "store" "order" "" 500 "server-1"
mark "store" "order" "a b" 900 ""
mark "store" "order" "" 400 "server-2"
mark "store" "gone" "" 77 ""
forget "store" "gone"
mark "store" "caf\u00e9 \"1\"" "" 12 ""
nonsense
mark "other" "order" "" 33 ""
mark "store" "order" "" 7000`

// Files of an earlier release are taken over, for all stores, and removed; those of a process that
// runs and those that cannot be read stay.
func TestUpgrade(t *testing.T) {
	path := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("marks-0", marksOfSlot0)
	write("marks-1", "leaf-marks 1 X\nmark \"store\" \"order\" \"\" 450 \"server-3\"\n")
	write("marks-2", "leaf-marks 2 X\n")
	running := open(t, path) // slot 0
	write("marks-3", "leaf-marks 1 X\nmark \"store\" \"late\" \"\" 5 \"\"\n")
	older, err := filelock.OpenLocal(filepath.Join(path, "worker-3"))
	if err != nil {
		t.Fatal(err)
	}
	defer older.Close()
	var log bytes.Buffer
	m, err := running.Memory("store", slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	check := func(m *segment.FileMemory, tag, source string, want segment.Mark) {
		t.Helper()
		if got := m.Recall(tag)[source]; got != want {
			t.Errorf("%s from %q: got %+v, want %+v", tag, source, got, want)
		}
	}
	check(m, "order", "", segment.Mark{High: 450, Server: "server-3"})
	check(m, "order", "a b", segment.Mark{High: 900})
	check(m, "gone", "", segment.Mark{})
	check(m, `café "1"`, "", segment.Mark{High: 12})
	check(m, "late", "", segment.Mark{})
	other, err := running.Memory("other", nil)
	if err != nil {
		t.Fatal(err)
	}
	check(other, "order", "", segment.Mark{High: 33})
	for name, stays := range map[string]bool{"marks-0": false, "marks-1": false, "marks-2": true, "marks-3": true} {
		if _, err := os.Stat(filepath.Join(path, name)); (err == nil) != stays {
			t.Errorf("%s: %v, and it stays: %v", name, err, stays)
		}
	}
	if text := log.String(); strings.Count(text, "took over") != 2 || strings.Count(text, "is not taken over") != 2 {
		t.Errorf("logged:\n%s", text)
	}
}
