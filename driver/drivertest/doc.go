// Package drivertest defines the duties of a driver as test suites. It also has tools for the tests
// of drivers and of the code above them.
//
// A driver's own test calls [TestStore]:
//
//	func TestStore(t *testing.T) {
//		drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
//			path := filepath.Join(t.TempDir(), "leaf.db")
//			return drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return open(t, path) }}
//		})
//	}
//
// In the same way the test of a registry of workers calls [TestRegistry]. [TestInit] is for the
// call that creates either.
//
// The tools are [Ranges] and [IDs], which find duplicates, and [Faulty] and [FaultyRegistry], a
// store and a registry that fail on demand.
package drivertest
