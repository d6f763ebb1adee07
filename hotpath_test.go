package leaf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A hotPath is a function that runs for every ID, with the number of its instructions, including
// the slow path and the stack check, and its allowed calls.
type hotPath struct {
	pkg, name string
	most      int // instructions
	calls     []string
}

var hotPaths = []hotPath{
	{"segment", "(*Buffer).Next", 40, []string{"segment.(*Buffer).next"}},
	{"segment", "(*Buffer).Take", 155, []string{"segment.(*Buffer).take", "segment.(*Buffer).badCount", "runtime.growslice"}},
	{"segment", "(*Cursor).Next", 40, []string{"segment.(*Cursor).nextBlock"}},
	{"segment", "(*Set).Next", 50, []string{"segment.(*table).get", "segment.(*Set).open", "segment.(*Buffer).Next"}},
	{"segment", "(*table).get", 125, []string{"runtime.panicBounds", "hash/maphash.String", "runtime.memequal", "segment.find"}},
	{"snowflake", "(*Generator).Next", 92, []string{"runtime.panicBounds", "snowflake.(*Generator).wait"}},
}

// Hot paths stay short. The test counts the compiler's instructions, because times on a busy
// machine show nothing.
func TestHotPathsStayShort(t *testing.T) {
	listings := make(map[string]string)
	for _, h := range hotPaths {
		if listings[h.pkg] == "" {
			listings[h.pkg] = disassemble(t, h.pkg)
		}
		lines := functionOf(listings[h.pkg], module+"/"+h.pkg+"."+h.name)
		t.Logf("%s %s: %d instructions", h.pkg, h.name, len(lines))
		if len(lines) == 0 || len(lines) > h.most {
			t.Errorf("%s %s has %d instructions, at most %d wanted", h.pkg, h.name, len(lines), h.most)
		}
		for _, callee := range callees(lines) {
			if !slices.Contains(h.calls, strings.TrimPrefix(callee, module+"/")) {
				t.Errorf("%s %s calls %s", h.pkg, h.name, callee)
			}
		}
	}
}

// disassemble returns the instructions of a package for amd64.
func disassemble(t *testing.T, pkg string) string {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "pkg.a")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", archive, "./"+pkg)
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), "go", "tool", "objdump", archive).Output()
	if err != nil {
		t.Fatalf("go tool objdump: %v", err)
	}
	return string(out)
}

// functionOf returns the instructions of one function.
func functionOf(listing, name string) (lines []string) {
	_, rest, _ := strings.Cut(listing, "TEXT "+name+"(SB)")
	body, _, _ := strings.Cut(rest, "\nTEXT ")
	for line := range strings.Lines(body) {
		if strings.Contains(line, "\t0x") {
			lines = append(lines, line)
		}
	}
	return lines
}

var callTo = regexp.MustCompile(`R_CALL:([^\s\[<]+)`)

// callees returns the called functions, except the growing of the stack.
func callees(lines []string) (names []string) {
	for _, line := range lines {
		for _, m := range callTo.FindAllStringSubmatch(line, -1) {
			if !strings.HasPrefix(m[1], "runtime.morestack") {
				names = append(names, m[1])
			}
		}
	}
	return names
}
