package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// An RPM package is installed, serves, is upgraded, downgraded and removed; the Alpine one is made
// of the same files. The counters go only if the operator says so.
func TestPackageFormats(t *testing.T) {
	old, next := build(t, "v1.0.0"), build(t, "v1.0.1")
	if info, err := os.Stat(pack(t, old, "1.0.0", "apk")); err != nil || info.Size() < 5<<20 {
		t.Errorf("apk: %v, %v", info, err)
	}
	root := scriptRoot(t)
	rpm := func(args ...string) {
		t.Helper()
		run(t, ".", "rpm", append([]string{"--root", root, "--nodeps"}, args...)...)
	}
	leaf, config := filepath.Join(root, "usr/bin/leaf"), filepath.Join(root, "etc/leaf/leaf.yaml")
	rpm("-i", pack(t, old, "1.0.0", "rpm"))
	wantVersion(t, leaf, "v1.0.0")
	data := filepath.Join(root, "var/lib/leaf")
	own := ownConfig(t, config, data)
	first := serve(t, leaf, config)
	rpm("-U", pack(t, next, "1.0.1", "rpm"))
	wantVersion(t, leaf, "v1.0.1")
	second := serve(t, leaf, config)
	rpm("-U", "--oldpackage", pack(t, old, "1.0.0", "rpm"))
	wantVersion(t, leaf, "v1.0.0")
	if third := serve(t, leaf, config); second <= first || third <= second {
		t.Errorf("IDs %d, %d, %d", first, second, third)
	}
	if text, err := os.ReadFile(config); err != nil || string(text) != own {
		t.Errorf("the configuration became %q, %v", text, err)
	}
	wantCalls(t, root, "daemon-reload\ndaemon-reload\ndaemon-reload\ndaemon-reload\ndaemon-reload\n")
	rpm("-e", "leaf-id")
	wantCalls(t, root, "disable --now leaf.service\ndaemon-reload\n")
	if files, err := os.ReadDir(data); err != nil || len(files) == 0 {
		t.Errorf("a removal took the counters: %v, %v", files, err)
	}
	if _, err := os.Stat(leaf); err == nil {
		t.Error("the binary is still there")
	}
	rpm("-i", pack(t, old, "1.0.0", "rpm"))
	t.Setenv("LEAF_REMOVE_DATA", "yes")
	rpm("-e", "leaf-id")
	if _, err := os.Stat(data); err == nil {
		t.Error("the counters are still there")
	}
}

// scriptRoot returns an empty root with a shell and a systemctl that notes how it is called.
func scriptRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	files := map[string]string{"/usr/bin/systemctl": "#!/bin/sh\necho \"$@\" >>/calls\n", "/run/systemd/system/unit": ""}
	for _, program := range []string{"/bin/sh", "/bin/rm"} {
		libraries := regexp.MustCompile(`/\S+`).FindAllString(run(t, ".", "ldd", program), -1)
		for _, file := range append(libraries, program) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			files[file] = string(text)
		}
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as in a root
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil { //nolint:gosec // they run
			t.Fatal(err)
		}
	}
	return root
}

// wantCalls compares the calls of systemctl since the last comparison.
func wantCalls(t *testing.T, root, want string) {
	t.Helper()
	path := filepath.Join(root, "calls")
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("systemctl was called with\n%s, %v, want\n%s", got, err, want)
	}
	if err := os.Remove(path); err != nil {
		t.Error(err)
	}
}
