// Package e2e holds the end-to-end tests: the built leaf command with real databases and faults.
// They start every server that they need, on loopback and in temporary folders. If a program is
// missing they fail with a message that names the package to install (make deps).
//
// The tests have a short form, which `make test-all` runs, and a long one with the full figures:
// `make lab`, which sets LEAF_LAB=1.
//
// Tests of clocks and leases start the test binary itself as nodes: processes that hold a worker ID,
// with a clock that can be wrong and a horizon of seconds. The tests pause and kill them. The test of
// copied data directories needs a mount namespace, and so root. Clusters that lease worker IDs run a
// build with the tag leaflab, in which the clock can be wrong. Around the end of a period the released
// command runs with time zones of the test's own, whose midnight is now.
//
// Folder lab holds checkers over the clients' answers, and a simulator in virtual time; see
// docs/reliability-detail.md.
//
// The folder is a separate module, so that the product does not require the tests' libraries.
package e2e
