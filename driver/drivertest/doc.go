// Package drivertest defines, as test suites, what a driver must do, and holds
// the tools that tests of drivers and of the code above them share.
//
// A driver's own test is a call of [TestStore]:
//
//	func TestStore(t *testing.T) {
//		drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
//			path := filepath.Join(t.TempDir(), "leaf.db")
//			return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return open(t, path) }}
//		})
//	}
//
// That of a registry of workers is a call of [TestRegistry], in the same way.
// [TestInit] is for the call that creates either.
//
// The tools are [Ranges] and [IDs], which find whatever was issued twice, and
// [Faulty] and [FaultyRegistry], a store and a registry that fail on demand.
package drivertest
