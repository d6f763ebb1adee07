package deploy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// `go install …@latest` builds the commands of the committed tree, from a module proxy in files,
// and they tell its version. A replace directive, or a file that a module must not have, fails.
func TestGoInstall(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	proxy, bin, modules := t.TempDir(), t.TempDir(), t.TempDir()
	release := module.Version{Path: "github.com/leaf-id/leaf", Version: "v1.0.0"}
	publish(t, root, proxy, release)
	known := strings.TrimSpace(run(t, root, "go", "env", "GOMODCACHE"))
	sources := "file://" + proxy + ",file://" + known + "/cache/download," + strings.TrimSpace(run(t, root, "go", "env", "GOPROXY"))
	// A cache of modules of its own, so that no later test meets this v1.0.0.
	run(t, t.TempDir(), "env", "CGO_ENABLED=0", "GOBIN="+bin, "GOMODCACHE="+modules, "GOPROXY="+sources, "GOSUMDB=off", "GOFLAGS=-modcacherw",
		"go", "install", "-trimpath", "-tags", "grpcnotrace", release.Path+"/cmd/leaf@latest", release.Path+"/cmd/leaf-bench@latest")
	for _, name := range []string{"leaf", "leaf-bench"} {
		if out := run(t, ".", filepath.Join(bin, name), "--version"); !strings.Contains(out, name+" version "+release.Version) {
			t.Errorf("%s tells %q", name, out)
		}
	}
}

// publish adds the module at HEAD to a proxy in files.
func publish(t *testing.T, root, proxy string, m module.Version) {
	t.Helper()
	dir := filepath.Join(proxy, m.Path, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(dir, m.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	tree := filepath.Join(t.TempDir(), "tree.tar")
	run(t, root, "git", "-c", "safe.directory=*", "archive", "--output="+tree, "HEAD")
	source := t.TempDir()
	run(t, source, "tar", "-xf", tree)
	if err := zip.CreateFromDir(archive, m, source); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"list":              m.Version + "\n",
		m.Version + ".mod":  run(t, source, "cat", "go.mod"),
		m.Version + ".info": fmt.Sprintf(`{"Version": %q, "Time": "2026-11-25T00:00:00Z"}`, m.Version),
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	info, err := archive.Stat()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the module has %d bytes", info.Size())
}
