// Package sqltest is what the tests of the SQL drivers share: how they open and create
// things, and the cases that hold for each of them beside the suites of package
// drivertest.
package sqltest
