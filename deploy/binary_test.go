package deploy

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
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
	// 37.8 MB, but the cluster links go-cmp, whose reflection has the linker keep every method.
	if limit := int64(52_000_000); info.Size() > limit {
		t.Errorf("the server has %d bytes, more than %d", info.Size(), limit)
	}
	image, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range releaseFlags(t, "$VERSION") {
		flag = strings.NewReplacer("-tags=", "-tags ", "-ldflags=", "").Replace(flag)
		if !strings.Contains(string(image), flag) {
			t.Errorf("the image is built without %s", flag)
		}
	}
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
