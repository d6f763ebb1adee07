package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leaf-id/leaf/internal/testserver"
)

// builds are the versions of the program that take part in a rolling upgrade, and back.
var builds = [2]string{"v1.0.0", "v1.1.0"}

// sabotageVariable names the rule that servers break, in builds that can.
const sabotageVariable = "LEAFLAB_SABOTAGE"

var labBuilds struct {
	mu   sync.Mutex
	done []string // paths
}

// leaseBuild returns a build for the lab, whose clock can be wrong, under a version's name.
func leaseBuild(t testing.TB, version string) string {
	t.Helper()
	return labBuild(t, version, "leaflab")
}

// labBuild returns a build with some tags, under a version's name; more are flags of go build.
func labBuild(t testing.TB, version, tags string, more ...string) string {
	t.Helper()
	labBuilds.mu.Lock()
	defer labBuilds.mu.Unlock()
	path := filepath.Join(filepath.Dir(leafBinary), "leaf-"+tags+"-"+version)
	if slices.Contains(labBuilds.done, path) {
		return path
	}
	args := []string{"build", "-tags", tags, "-ldflags", "-X github.com/leaf-id/leaf/internal/cli.Version=" + version, "-o", path}
	args = slices.Concat(args, raceFlags(), more)
	cmd := exec.Command("go", append(args, "./cmd/leaf")...)
	cmd.Dir = ".."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the leaf command for the lab: %v\n%s", err, out)
	}
	labBuilds.done = append(labBuilds.done, path)
	return path
}

// Only the lab's builds can have a wrong clock: the released command ignores the variables, and also
// the variable for servers that break a rule.
func TestReleaseHasNoLabClock(t *testing.T) {
	testserver.Long(t)
	t.Parallel()
	clock := filepath.Join(t.TempDir(), "clock")
	if err := os.WriteFile(clock, []byte("-1h"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		binary string
		off    time.Duration
	}{{leafBinary, 0}, {leaseBuild(t, builds[0]), -time.Hour}} {
		content, err := os.ReadFile(c.binary)
		if err != nil {
			t.Fatal(err)
		}
		if has := bytes.Contains(content, []byte("LEAFLAB_")); has != (c.off != 0) {
			t.Errorf("%s has the lab's variables: %v", filepath.Base(c.binary), has)
		}
		if bytes.Contains(content, []byte(sabotageVariable)) {
			t.Errorf("%s can break a rule", filepath.Base(c.binary))
		}
		s := serveBy(t, append([]string{"env", "LEAFLAB_CLOCK=" + clock, c.binary}, serveArgs(nil)...)...)
		id := s.awaitSnowflake(10 * time.Second)
		if off := time.Until(time.UnixMilli(id>>22 + javaEpoch)); (off - c.off).Abs() > 10*time.Second {
			t.Errorf("%s: the ID's time is %v off", filepath.Base(c.binary), off)
		}
		s.stop()
	}
}
