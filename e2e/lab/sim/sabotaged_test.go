//go:build !leafsabotage

package sim

import (
	"cmp"
	"flag"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/leaf-id/leaf/e2e/lab/saboteurs"
	"github.com/leaf-id/leaf/internal/testserver"
)

// TestSaboteurs breaks one rule after the other in that build of this package and runs its tests.
func TestSaboteurs(t *testing.T) {
	testserver.Long(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay, err := saboteurs.Overlay(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "sim.test")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-tags", "leafsabotage", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	chosen := cmp.Or(flag.Lookup("test.run").Value.String(), "Saboteurs|Failure")
	run := exec.CommandContext(t.Context(), binary, "-test.v", "-test.run", chosen)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}
