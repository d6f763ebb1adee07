// Package sqltest has the common part of the SQL drivers' tests: opening and creating, and cases
// for each of them in addition to the suites of package drivertest.
package sqltest
