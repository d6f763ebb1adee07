package drivertest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/leaf-id/leaf/segment"
)

// A StoreBackend is one durable state, such as a database, and the way to it.
type StoreBackend struct {
	// Open returns a further client of the state, with connections of its own, and
	// has t.Cleanup close it. It is called several times, also after the suite
	// closed an earlier client, and never from two goroutines at once.
	Open func(t testing.TB) segment.Store

	// Create adds a tag to the state. It is needed only where the store is no [segment.Catalog].
	Create func(t testing.TB, tag segment.Tag)

	Caps StoreCaps
}

// StoreCaps excuses a store from rules. The zero value excuses it from none.
type StoreCaps struct {
	// Units: the store deals in units of its own. Advance may return fewer IDs
	// than asked for, and one caller's ranges need not touch.
	Units bool

	// BMPOnly: the state cannot hold characters above U+FFFF, as is so of a table
	// in MySQL's three-byte utf8. The store must refuse such tags as invalid.
	BMPOnly bool

	// NoDescriptions: the state has no place for descriptions. The store ignores
	// those that it is given.
	NoDescriptions bool

	// NoOptions: the state has no place for options besides the description. The store must refuse
	// them as unsupported.
	NoOptions bool

	// NoIdentity: the state has no place for the identity of the store.
	NoIdentity bool
}

// TestStore checks every rule of [segment.Store] and of the optional interfaces
// that the store implements, each rule in a subtest on a state of its own.
// newBackend makes a fresh state without any tag.
func TestStore(t *testing.T, newBackend func(t testing.TB) StoreBackend) {
	for _, r := range storeRules() {
		t.Run(r.name, func(t *testing.T) {
			if err := r.run(t, newBackend); err != nil {
				t.Errorf("%v\nthe rule: %s", err, r.why)
			}
		})
	}
}

// A storeRule is one duty of a store. It returns its complaint as an error, so that a test can
// check its complaints about a broken store.
type storeRule struct {
	name  string
	why   string
	check func(ctx context.Context, b *fixture) error
}

// ruleOf is a rule for the stores that are also an S. The state has the tags.
func ruleOf[S any](name, why string, check func(context.Context, *fixture, S) error, tags ...segment.Tag) storeRule {
	return storeRule{name, why, func(ctx context.Context, b *fixture) error {
		s, err := b.openWith(ctx, tags...)
		if of, ok := s.(S); ok && err == nil {
			return check(ctx, b, of)
		}
		return err
	}}
}

// ruleTimeout bounds one rule: a store that hangs fails.
const ruleTimeout = time.Minute

func (r storeRule) run(t testing.TB, newBackend func(testing.TB) StoreBackend) error {
	ctx, cancel := context.WithTimeout(t.Context(), ruleTimeout)
	defer cancel()
	return r.check(ctx, &fixture{t: t, StoreBackend: newBackend(t), fresh: newBackend})
}

func storeRules() []storeRule {
	return slices.Concat(advanceRules(), sharingRules(), faultRules(), listRules(), returnRules(), catalogRules(), identityRules())
}
