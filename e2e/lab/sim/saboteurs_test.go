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
