//go:build leafsabotage

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	labcheck "github.com/leaf-id/leaf/e2e/lab"
	"github.com/leaf-id/leaf/e2e/lab/saboteurs"
)

// A sabotagedTest is a rule to break, and the test of a package that notices.
type sabotagedTest struct{ rule, what, folder, test string }

// sabotagedMembers lists the rules of a cluster, of its restore and of what proves that a process is dead.
var sabotagedMembers = []sabotagedTest{
	{"Cluster own start", "an empty directory starts a cluster by itself", "internal/cluster", "TestUnaddedServerIsRefused"},
	{"Cluster unadded", "a server joins that nobody added", "internal/cluster", "TestUnaddedServerIsRefused"},
	{"Cluster voter", "an added server has a vote before it has the data", "internal/cluster", "TestAddedServerHasNoVote"},
	{"Cluster old ID", "a wiped member joins under its old ID", "internal/cluster", "TestEmptiedMemberIsRefused"},
	{"Cluster lost log", "a member starts without its log", "internal/cluster", "TestEmptiedMemberIsRefused"},
	{"Cluster quorum", "a removal leaves too few members", "internal/cluster", "TestQuorumIsKept"},
	{"Cluster removed", "a removed member starts", "internal/cluster", "TestRemovedMemberIsRefused"},
	{"Cluster token", "all clusters have one token", "internal/cluster", "TestOtherClusterIsRefused"},
	{"Cluster certificates", "peers on other machines need no certificates", "internal/cluster", "TestMutualTLS"},
	{"Cluster clock", "a member's own clock is its second clock", "internal/cluster", "TestClockIsThatOfOthers"},
	{"Cluster alone", "a server alone, which others reach, has a registry's clock", "internal/cluster", "TestClockIsThatOfOthers"},
	{"restore wait", "a restored cluster starts at once", "internal/cluster", "TestRestoredClusterWaits"},
	{"restore counters", "restored counters are not raised", "driver/kv", "TestRestore"},
	{"restore identity", "a restored store has the identity of the old one", "driver/kv", "TestRestore"},
	{"restore holders", "restored worker IDs keep their holders", "worker", "TestRestored"},
	{"restore floor", "restored worker IDs are free before lost leases have ended", "worker", "TestRestored"},
	{"W8 birth time", "a state file with the inode of an earlier one is taken for that", "worker", "TestIdentityIsThatOfTheFile"},
	{"W8 local file system", "a state file proves something on a network file system", "worker", "TestStateFileOnRemoteFileSystem"},
}

// TestSabotagedMembers breaks the rules of a cluster, and shows that the tests of the packages notice.
func TestSabotagedMembers(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := saboteurs.Overlay(root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	binaries := make(map[string]string)
	for _, s := range sabotagedMembers {
		if binaries[s.folder] == "" {
			binaries[s.folder] = sabotagedBinary(t, root, overlay, s.folder)
		}
		t.Run(s.rule+"/"+s.test, func(t *testing.T) {
			if out, err := s.run(t, binaries[s.folder], ""); err != nil || !strings.Contains(out, "--- PASS: "+s.test+" ") {
				t.Fatalf("without a fault: %v\n%s", err, out)
			}
			begin := time.Now()
			out, err := s.run(t, binaries[s.folder], s.rule)
			got := labcheck.Saboteur{Rule: s.rule, What: s.what, Kind: s.folder, Schedules: 1, Took: time.Since(begin)}
			if _, failed := errors.AsType[*exec.ExitError](err); failed && strings.Contains(out, "--- FAIL: "+s.test+" ") {
				got.Sign = s.test
			}
			if dir := os.Getenv("LEAF_REPORT"); dir != "" {
				if err := got.Save(dir); err != nil {
					t.Error(err)
				}
			}
			if got.Sign == "" {
				t.Fatalf("%s: not noticed in %v: %v\n%s", s.what, got.Took, err, out)
			}
			t.Logf("%s: noticed after %v:\n%s", s.what, got.Took.Round(time.Millisecond), out)
		})
	}
}

// sabotagedBinary compiles the tests of a package with the faults in it.
func sabotagedBinary(t *testing.T, root, overlay, folder string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), filepath.Base(folder)+".test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", binary, "./"+folder)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// run runs the test in a program that breaks a rule; "": none.
func (s sabotagedTest) run(t *testing.T, binary, rule string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", "^"+s.test+"$")
	cmd.Dir, cmd.Env = filepath.Join("..", filepath.FromSlash(s.folder)), append(os.Environ(), sabotageVariable+"="+rule)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
