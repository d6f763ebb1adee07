// Package testserver starts real database servers for tests: private, on
// loopback, with their data in a temporary folder. It ends only the processes that
// it started, also when a test fails or the test binary is killed.
//
// A server belongs to one test, or is shared by all tests of a package:
//
//	func TestMain(m *testing.M) {
//		server, err := testserver.StartMariaDB(nil)
//		...
//		code := m.Run()
//		server.Close()
//		os.Exit(code)
//	}
package testserver

// TB is the part of [testing.TB] that this package needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}
