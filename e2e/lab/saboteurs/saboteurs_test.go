package saboteurs

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/internal/testserver"
)

// Each fault fits the code as it is, and asks for its own name.
func TestFaultsFit(t *testing.T) {
	if _, err := plant("../../..", faults()); err != nil {
		t.Fatal(err)
	}
	asked := planted(t)
	for _, h := range hunks(faults()) {
		for name := range strings.SplitSeq(h.fault, ", ") {
			if !asked[name] && h.fault != "suites" {
				t.Errorf("%s: nothing asks for %s", h.file, name)
			}
		}
	}
}

var asks = regexp.MustCompile(`Broken\("([^"]+)"\)`)

// planted returns the names of the faults that the copy asks for.
func planted(t *testing.T) map[string]bool {
	text := faults()
	err := fs.WalkDir(added, "testdata", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			more, failed := added.ReadFile(path)
			text, err = text+string(more), failed
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, m := range asks.FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
	}
	return names
}

func TestStaleFaults(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\n\nvar x = 1\nvar y = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		faults, want string
		err          error
	}{
		"fits":         {"# one\n--- a.go\n var x = 1\n-var y = 1\n+var y = 2\n", "var x = 1\nvar y = 2\n", nil},
		"two":          {"# one\n--- a.go\n-var x = 1\n+var x = 2\n\n# two\n--- a.go\n var y = 1\n+var z = 1\n", "var x = 2\nvar y = 1\nvar z = 1\n", nil},
		"gone":         {"# one\n--- a.go\n-var z = 1\n+var z = 2\n", "", errStale},
		"not a line":   {"# one\n--- a.go\n-x = 1\n+x = 2\n", "", errStale},
		"no such file": {"# one\n--- b.go\n-x = 1\n+x = 2\n", "", os.ErrNotExist},
	} {
		files, err := plant(root, tt.faults)
		if !errors.Is(err, tt.err) || err == nil && !strings.HasSuffix(files["a.go"], tt.want) {
			t.Errorf("%s: %v, and\n%s", name, err, files["a.go"])
		}
	}
}

// The copy compiles.
func TestOverlayBuilds(t *testing.T) {
	testserver.Long(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := Overlay(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", os.DevNull, "./...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
