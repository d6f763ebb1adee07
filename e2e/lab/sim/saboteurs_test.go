//go:build leafsabotage

package sim

import (
	"os"
	"strings"
	"testing"

	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/snowflake"
	"github.com/leaf-id/leaf/worker"
)

// A saboteur breaks one rule of segment mode or of leases: in the product's own code, which
// asks for the name in builds with the tag leafsabotage, or here, at an interface.
type saboteur struct {
	name, kind string
	what       string
	sign       string // what is found then
}

const twice = "issued twice"

var saboteurs = []saboteur{
	{"CAS", "tags", "the store writes whatever it holds", twice},
	{"CAS of records", "leases", "the registry writes whatever it holds", twice},
	{"outcome", "tags", "an unknown outcome is taken for success", twice},
	{"reuse", "tags", "a range is used again after an error", twice},
	{"R1 condition", "tags", "a give-back does not ask whether others have moved the counter", twice},
	{"R1 seal", "tags", "a span's cursor is read where it has to be swapped", twice},
	{"R1 pieces", "tags", "pieces that do not touch are given back as one", twice},
	{"R2 guard", "tags", "a counter that went back is believed", twice},
	{"R2 memory", "tags", "the guard's memory does not outlive the process", twice},
	{"R2 set", "tags", "a counter is set to a value where it has to be advanced", twice},
	{"R3 step", "tags", "a range is computed from the step that is read after it", twice},
	{"R4 clamp", "tags", "the counter stays at its largest value", twice},
	{"R5 missing", "tags", "a counter that is missing begins at 0", twice},
	{"W1 W2 mark", "leases", "times are issued though the file could not be written", twice},
	{"W2 fsync", "leases", "the file is not written through to the disk", twice},
	{"W3 seal", "leases", "a generator's cursor is read where it has to be swapped", ""},
	{"W3 file", "leases", "a release is sent before the file says so", twice},
	{"W3 every generator", "leases", "only the first generator is sealed", twice},
	{"W5 expiry", "leases", "records expire", twice},
	{"W6 instance", "leases", "claims look like each other", twice},
	{"W7 rounding", "leases", "a floor is rounded down to a tick, and a limit up", twice},
	{"W7 layouts", "leases", "layouts of one name are not compared", twice},
	{"W8 copy", "leases", "a copied state file is taken for the one it was copied from", twice},
	{"W8 lock", "leases", "two processes have one state file", twice},
	{"W11 registry", "leases", "each machine has a registry of its own", twice},
	{"W10 claim", "leases", "worker IDs are claimed whose floor is ahead of the clock", "received nothing"},
	{"floor", "leases", "such a lease begins below that floor too", twice},
}

// mostSchedules is how many schedules a saboteur may survive.
func mostSchedules() uint64 {
	if os.Getenv("LEAF_LAB") != "" {
		return 20000
	}
	return 3000
}

// Each broken rule leads to what it is there to prevent, mostly to an ID that is issued twice.
func TestSaboteurs(t *testing.T) {
	for _, s := range saboteurs {
		t.Run(s.name, func(t *testing.T) {
			segment.Sabotage, snowflake.Sabotage, worker.Sabotage = s.name, s.name, s.name
			for seed := uint64(1); seed <= mostSchedules(); seed++ {
				if _, err := play(t, s.kind, seed, s.name); err != nil && strings.Contains(err.Error(), s.sign) {
					t.Logf("%s: noticed in schedule %d: %v", s.what, seed, err)
					return
				}
			}
			t.Errorf("%s: not noticed in %d schedules", s.what, mostSchedules())
		})
	}
}
