package deploy

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The image holds nothing but the binary and an empty folder of its user. The server serves there,
// and the health check is content.
func TestImage(t *testing.T) {
	root := t.TempDir()
	data, user := filepath.Join(root, "data"), 65532
	copied, err := os.ReadFile(filepath.Join(build(t, "v1.0.0"), "bin/leaf"))
	if err == nil {
		err = os.WriteFile(filepath.Join(root, "leaf"), copied, 0o755) //nolint:gosec // others run it
	}
	if err == nil {
		err = os.Mkdir(data, 0o700)
	}
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(data, user, user)
	}
	if err != nil {
		t.Fatal(err)
	}
	for dir := root; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755) //nolint:gosec // the image's user enters it
	}
	inImage := func(args ...string) *exec.Cmd {
		cmd := exec.Command("/leaf", args...)
		cmd.Env, cmd.Dir = append(imageEnv(t), "LEAF_LISTEN=:"+port, "LEAF_RESP=off", "LEAF_SERVER=127.0.0.1:"+port), "/"
		cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
		if os.Geteuid() == 0 {
			cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}
		} else {
			cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: user, HostID: os.Geteuid(), Size: 1}}
		}
		return cmd
	}
	server := inImage("serve")
	var log bytes.Buffer
	server.Stderr = &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = server.Process.Kill() }()
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		out, err := inImage(healthCheck(t)...).CombinedOutput()
		if err == nil {
			break
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("the health check: %v\n%s", err, out)
		}
	}
	get(t, "http://127.0.0.1:"+port+"/v1/ids/segment/leaf-segment-test")
	signal(t, server, syscall.SIGTERM)
	if err := server.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log.String())
	}
	if files, err := os.ReadDir(data); err != nil || len(files) == 0 {
		t.Errorf("the counters are not in /data: %v, %v", files, err)
	}
}

// port is free.
var port = func() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	defer l.Close()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}()

// imageEnv returns the variables that the Dockerfile sets.
func imageEnv(t *testing.T) []string {
	t.Helper()
	return strings.Fields(dockerfile(t, `(?m)^ENV (.*)$`))
}

// healthCheck returns the arguments of leaf in the Dockerfile's check.
func healthCheck(t *testing.T) []string {
	t.Helper()
	args := dockerfile(t, `(?m)^HEALTHCHECK .* CMD \["/leaf", "(.*)"\]$`)
	return strings.Split(args, `", "`)
}

// dockerfile returns the match of a pattern's group in the Dockerfile.
func dockerfile(t *testing.T, pattern string) string {
	t.Helper()
	text, err := os.ReadFile("docker/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("the Dockerfile has no %s", pattern)
	}
	return string(m[1])
}

func TestWorkflows(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	run(t, ".", "go", append([]string{"tool", "actionlint"}, files...)...)
}

// The two descriptions of the packages name the same files, and they exist.
func TestReleaseHasThePackagesFiles(t *testing.T) {
	source := regexp.MustCompile(`\{src: "?([^\s"]+)"?, dst: ([^ ,}]+)`)
	sets := make([]map[string]string, 2)
	for i, path := range []string{"packages/nfpm.yaml", "../.goreleaser.yaml"} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		sets[i] = make(map[string]string)
		for _, m := range source.FindAllSubmatch(text, -1) {
			sets[i][string(m[2])] = string(m[1])
		}
	}
	for dst, src := range sets[0] {
		if src == "bin/leaf" || src == "bin/leaf-bench" {
			continue // goreleaser adds its binaries
		}
		if sets[1][dst] != src {
			t.Errorf("%s is %s in the package and %q in the release", dst, src, sets[1][dst])
		}
		if _, err := os.Stat(filepath.Join("..", src)); err != nil && !strings.HasPrefix(src, "bin/") {
			t.Error(err)
		}
	}
}
