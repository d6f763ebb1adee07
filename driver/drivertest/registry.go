package drivertest

import (
	"context"
	"slices"
	"testing"

	"github.com/leaf-id/leaf/worker"
)

// A RegistryBackend is one durable state, such as a database, and the way to it.
type RegistryBackend struct {
	// Open returns a further client of the state, with connections of its own, and
	// has t.Cleanup close it. It is called several times, also after the suite
	// closed an earlier client, and never from two goroutines at once.
	Open func(t testing.TB) worker.Registry

	// Corrupt writes text into the cell of a worker, over any content, without the registry. Nil
	// excuses the registry from the rules about unreadable cells.
	Corrupt func(t testing.TB, worker int64, text string)
}

// TestRegistry checks every rule of [worker.Registry] and of the optional interfaces
// that the registry implements, each rule in a subtest on a state of its own.
// newBackend makes a fresh state without any record.
func TestRegistry(t *testing.T, newBackend func(t testing.TB) RegistryBackend) {
	testRegistry(t, registryRules(), newBackend)
}

// TestAssigner checks the rules for a [worker.Assigner] whose cells do not fit the others of
// [TestRegistry].
func TestAssigner(t *testing.T, newBackend func(t testing.TB) RegistryBackend) {
	testRegistry(t, assignRules(), newBackend)
}

func testRegistry(t *testing.T, rules []registryRule, newBackend func(t testing.TB) RegistryBackend) {
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			if err := r.run(t, newBackend(t)); err != nil {
				t.Errorf("%v\nthe rule: %s", err, r.why)
			}
		})
	}
}

// A registryRule is one thing that a registry must do, see [storeRule].
type registryRule struct {
	name  string
	why   string
	check func(ctx context.Context, b *registryFixture) error
}

func (r registryRule) run(t testing.TB, backend RegistryBackend) error {
	ctx, cancel := context.WithTimeout(t.Context(), ruleTimeout)
	defer cancel()
	return r.check(ctx, &registryFixture{t: t, RegistryBackend: backend})
}

func registryRules() []registryRule {
	return slices.Concat(swapRules(), recordRules(), assignRules(), registryFaultRules(), watchRules())
}
