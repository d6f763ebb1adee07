// Package e2e holds the end-to-end tests: the built leaf command beside real
// databases, with faults. They start every server that they need, on loopback and
// in temporary folders, and fail with a message that says what to install where a
// program is missing (make deps).
//
// The tests have a short form, which `make test-all` runs, and a long one that gives
// the full figures: `make lab`, which sets LEAF_LAB=1.
//
// Tests of clocks and leases start the test binary itself as nodes: processes that
// hold a worker ID with a clock that can be wrong and a horizon of seconds, and that
// can be paused and killed. The test of copied data directories needs a mount
// namespace, and so root. Clusters that lease worker IDs are servers of a build with the tag
// leaflab, whose clock can be wrong.
//
// Folder lab holds checkers over all that clients received, and a simulator in virtual time; see
// docs/reliability.md.
//
// The folder is a module of its own, so that what only tests need never appears
// among the requirements of the product.
package e2e
