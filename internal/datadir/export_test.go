package datadir

// Identity is identity, for tests.
var Identity = identity
