package drivertest

import (
	"slices"
	"testing"

	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/memory"
	"github.com/leaf-id/leaf/segment"
)

// backendOf makes fresh states whose clients open makes.
func backendOf(open func(*kv.Store) segment.Store) func(testing.TB) StoreBackend {
	return func(testing.TB) StoreBackend {
		state := memory.New().Store()
		return StoreBackend{Open: func(testing.TB) segment.Store { return open(state) }}
	}
}

// plainBackend is a fresh state whose clients have no optional interface.
func plainBackend(testing.TB) StoreBackend {
	state := memory.New().Store()
	return StoreBackend{
		Open: func(testing.TB) segment.Store { return struct{ segment.Store }{state} },
		Create: func(t testing.TB, tag segment.Tag) {
			if err := state.Create(t.Context(), tag); err != nil {
				t.Error(err)
			}
		},
	}
}

// TestRulesPassGoodStore applies the rules to a correct store, directly and without its optional
// interfaces.
func TestRulesPassGoodStore(t *testing.T) {
	for _, r := range storeRules() {
		if err := r.run(t, backendOf(func(s *kv.Store) segment.Store { return s })); err != nil {
			t.Errorf("%s: %v", r.name, err)
		}
		if err := r.run(t, plainBackend); err != nil {
			t.Errorf("%s, plain store: %v", r.name, err)
		}
	}
}

// TestRulesCatchBrokenStores checks that the rules about its fault catch each broken store, and
// that each rule catches some store.
func TestRulesCatchBrokenStores(t *testing.T) {
	idle := make(map[string]bool)
	for _, r := range storeRules() {
		idle[r.name] = true
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			for _, r := range storeRules() {
				if !slices.Contains(m.caughtBy, r.name) {
					continue
				}
				delete(idle, r.name)
				if err := r.run(t, backendOf(m.open)); err == nil {
					t.Errorf("rule %q has nothing to say", r.name)
				} else {
					t.Logf("%s: %v", r.name, err)
				}
			}
		})
	}
	for name := range idle {
		t.Errorf("no broken store shows that rule %q can fail", name)
	}
}

// TestRulesMutantsNameRules guards the table against misspelt rules.
func TestRulesMutantsNameRules(t *testing.T) {
	for _, m := range mutants {
		for _, name := range m.caughtBy {
			if !slices.ContainsFunc(storeRules(), func(r storeRule) bool { return r.name == name }) {
				t.Errorf("mutant %q names the rule %q, which is none", m.name, name)
			}
		}
	}
}

// A mutant is a way to be broken, and the rules that must notice.
type mutant struct {
	name     string
	open     func(*kv.Store) segment.Store
	caughtBy []string
}
