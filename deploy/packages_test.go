package deploy

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// built has what [build] made, by version, in a folder that ends with the tests.
var (
	built  = make(map[string]string)
	folder string
)

func TestMain(m *testing.M) {
	var err error
	if folder, err = os.MkdirTemp("", "leaf-deploy-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// build fills a folder with a release's bin/, of the given version.
func build(t *testing.T, version string) string {
	t.Helper()
	if dir, ok := built[version]; ok {
		return dir
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(folder, version)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"deploy", "LICENSE"} {
		if err := os.Symlink(filepath.Join(root, name), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	bin := filepath.Join(dir, "bin") + "/"
	line := slices.Concat(releaseEnv(t, root), []string{"go", "build", "-buildvcs=false"}, releaseFlags(t, version), []string{"-o", bin, "./cmd/..."})
	run(t, root, "env", line...)
	docs := filepath.Join(folder, "docs") + "/"
	run(t, root, "go", "build", "-buildvcs=false", "-tags=docs", "-o", docs, "./cmd/...")
	run(t, root, docs+"leaf", bin)
	run(t, root, docs+"leaf-bench", bin)
	built[version] = dir
	return dir
}

// releaseFlags returns the flags of the compiler in the release's configuration.
func releaseFlags(t *testing.T, version string) []string {
	t.Helper()
	m := releaseConfig(t, `(?m)^    flags: \[(.*)\].*\n    ldflags: \["(.*)"\]$`)
	linker := strings.ReplaceAll(m[2], "{{ .Tag }}", version)
	return append(strings.Split(m[1], ", "), "-ldflags="+linker)
}

// releaseEnv returns the environment of the compiler there.
func releaseEnv(t *testing.T, root string) []string {
	t.Helper()
	m := releaseConfig(t, `(?m)^    env: \[(\w+=\w+), '(\w+)={{ abs "(.*)" }}'\]$`)
	return []string{m[1], m[2] + "=" + filepath.Join(root, m[3])}
}

// releaseConfig returns the matches of a pattern and its groups in the release's configuration.
func releaseConfig(t *testing.T, pattern string) []string {
	t.Helper()
	text, err := os.ReadFile("../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindStringSubmatch(string(text))
	if m == nil {
		t.Fatalf(".goreleaser.yaml has no %s", pattern)
	}
	return m
}

// pack makes a package of a built folder.
func pack(t *testing.T, dir, version, kind string) string {
	t.Helper()
	nfpm := strings.TrimSpace(run(t, ".", "go", "tool", "-n", "nfpm"))
	target := filepath.Join(dir, "leaf-id-"+version+"."+kind)
	run(t, dir, "env", "VERSION="+version, "ARCH=amd64", nfpm, "package", "--config", "deploy/packages/nfpm.yaml", "--packager", kind, "--target", target)
	return target
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// dpkg runs dpkg on an empty root.
func dpkg(t *testing.T, root string, args ...string) string {
	t.Helper()
	return run(t, ".", "dpkg", append([]string{"--root=" + root, "--force-script-chrootless", "--force-confold"}, args...)...)
}

func emptyRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"var/lib/dpkg/info", "var/lib/dpkg/updates"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"var/lib/dpkg/status", "var/lib/dpkg/available"} {
		if err := os.WriteFile(filepath.Join(root, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// A package is installed, serves, reloads, is upgraded and downgraded, and purged. The configuration
// of an operator and the counters stay.
func TestDebianPackage(t *testing.T) {
	old, next := build(t, "v1.0.0"), build(t, "v1.0.1")
	root := emptyRoot(t)
	dpkg(t, root, "-i", pack(t, old, "1.0.0", "deb"))
	leaf, data := filepath.Join(root, "usr/bin/leaf"), filepath.Join(root, "var/lib/leaf")
	wantVersion(t, leaf, "v1.0.0")
	config := filepath.Join(root, "etc/leaf/leaf.yaml")
	own := ownConfig(t, config, data)
	first := serve(t, leaf, config)
	dpkg(t, root, "-i", pack(t, next, "1.0.1", "deb"))
	wantVersion(t, leaf, "v1.0.1")
	if second := serve(t, leaf, config); second <= first {
		t.Errorf("ID %d after %d", second, first)
	}
	dpkg(t, root, "-i", pack(t, old, "1.0.0", "deb"))
	wantVersion(t, leaf, "v1.0.0")
	serve(t, leaf, config)
	if text, err := os.ReadFile(config); err != nil || string(text) != own {
		t.Errorf("the configuration became %q, %v", text, err)
	}
	dpkg(t, root, "--purge", "leaf-id")
	if _, err := os.Stat(leaf); err == nil {
		t.Error("the binary is still there")
	}
	if files, err := os.ReadDir(data); err != nil || len(files) == 0 {
		t.Errorf("a purge removed the counters: %v, %v", files, err)
	}
	dpkg(t, root, "-i", pack(t, next, "1.0.1", "deb"))
	t.Setenv("LEAF_REMOVE_DATA", "yes")
	dpkg(t, root, "--remove", "leaf-id")
	if _, err := os.Stat(data); err != nil {
		t.Errorf("a removal that is no purge: %v", err)
	}
	dpkg(t, root, "--purge", "leaf-id")
	if _, err := os.Stat(data); err == nil {
		t.Error("the counters are still there")
	}
}

// ownConfig is an operator's own configuration.
func ownConfig(t *testing.T, path, data string) string {
	t.Helper()
	text := "listen: 127.0.0.1:0\nresp: off\ndata: " + data + "\ndrain_delay: 500ms\nlog: {format: text}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}

func wantVersion(t *testing.T, leaf, want string) {
	t.Helper()
	if got := run(t, ".", leaf, "version"); !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// serve starts the server, takes an ID, reloads, drains and stops it. It returns the ID.
func serve(t *testing.T, leaf, config string) int64 {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(leaf, "serve", "--config", config)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	url := logged(t, log, "msg=serving", "url=")
	id, err := strconv.ParseInt(get(t, url+"/api/segment/get/leaf-segment-test"), 10, 64)
	if err != nil {
		t.Error(err)
	}
	signal(t, cmd, syscall.SIGHUP)
	logged(t, log, "read again", "")
	signal(t, cmd, syscall.SIGTERM)
	logged(t, log, "stopping", "")
	if res, err := http.Get(url + "/readyz"); err != nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a server that drains says %v, %v", res, err)
	} else {
		res.Body.Close()
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	return id
}

func signal(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// logged waits for a line with the text, and returns the field after it.
func logged(t *testing.T, log *os.File, text, field string) string {
	t.Helper()
	for range 200 {
		all, err := os.ReadFile(log.Name())
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.SplitSeq(string(all), "\n") {
			if _, value, ok := strings.Cut(line, field); ok && strings.Contains(line, text) {
				value, _, _ = strings.Cut(value, " ")
				return value
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	all, _ := os.ReadFile(log.Name())
	t.Fatalf("%q is not logged:\n%s", text, all)
	return ""
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, res.Status, err)
	}
	return body.String()
}

// systemd understands every line of the unit.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile("systemd/leaf.service")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "leaf.service")
	text = bytes.ReplaceAll(text, []byte("=/usr/bin/leaf "), []byte("="+self+" "))
	if err := os.WriteFile(unit, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("systemd-analyze", "verify", unit).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
}
