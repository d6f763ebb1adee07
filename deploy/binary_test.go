package deploy

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The released server stays small. What makes it 12 MB larger at once is a library that looks up
// methods by name, as text/template does: the linker then keeps every exported method.
func TestSizeOfServer(t *testing.T) {
	info, err := os.Stat(filepath.Join(build(t, "v1.0.0"), "bin/leaf"))
	if err != nil {
		t.Fatal(err)
	}
	if limit := int64(40_000_000); info.Size() > limit {
		t.Errorf("the server has %d bytes, more than %d", info.Size(), limit)
	}
	image, err1 := os.ReadFile("docker/Dockerfile")
	makefile, err2 := os.ReadFile("../Makefile")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	for _, option := range append(releaseFlags(t, "$VERSION"), releaseEnv(t, "/src")...) {
		option = strings.NewReplacer("-tags=", "-tags ", "-ldflags=", "").Replace(option)
		if !strings.Contains(string(image), option) {
			t.Errorf("the image is built without %s", option)
		}
	}
	if workspace := releaseEnv(t, "$(CURDIR)")[1]; !strings.Contains(string(makefile), workspace) {
		t.Errorf("make build is without %s", workspace)
	}
}

// The workspace of a release replaces go-cmp, and nothing else.
func TestReleaseWorkspace(t *testing.T) {
	list := []string{"go", "list", "-m", "-f", "{{.Path}} {{.Version}}{{with .Replace}} => {{.Path}}{{end}}", "all"}
	tested := strings.Split(run(t, "..", "env", list...), "\n")
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	released := strings.Split(run(t, "..", "env", append(releaseEnv(t, root), list...)...), "\n")
	released = slices.DeleteFunc(released, func(m string) bool { return slices.Contains(tested, m) })
	if len(released) != 1 || !strings.Contains(released[0], "google/go-cmp ") {
		t.Errorf("a release differs by %q", released)
	}
	run(t, "release/go-cmp", "go", "vet", "./...")
	run(t, "release/go-cmp", "go", "test", "./...")
}

// Each page that a man page refers to exists, up to the last subcommand, and each program has its
// completions.
func TestManPages(t *testing.T) {
	bin := filepath.Join(build(t, "v1.0.0"), "bin")
	seen := make(map[string]bool)
	for next := []string{"leaf", "leaf-bench"}; len(next) > 0; next = next[1:] {
		name := next[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		for _, m := range regexp.MustCompile(`(leaf[a-z-]*)\(1\)`).FindAllStringSubmatch(manPage(t, bin, name), -1) {
			next = append(next, m[1])
		}
	}
	if !seen["leaf-worker-pool-create"] {
		t.Errorf("pages: %v", seen)
	}
	if page := manPage(t, bin, "leaf-serve"); !strings.Contains(page, `\fB--store\fP`) || !strings.Contains(page, "\n  leaf serve --listen :8080") {
		t.Errorf("leaf-serve.1:\n%s", page)
	}
	for _, name := range []string{"leaf.bash", "_leaf", "leaf.fish", "leaf.ps1", "leaf-bench.bash", "_leaf-bench", "leaf-bench.fish"} {
		if text, err := os.ReadFile(filepath.Join(bin, "completions", name)); err != nil || !strings.Contains(string(text), "__complete") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

func manPage(t *testing.T, bin, name string) string {
	t.Helper()
	file, err := os.Open(filepath.Join(bin, "man", name+".1.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
