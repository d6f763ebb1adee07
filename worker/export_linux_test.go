package worker

// Identity is for tests.
var Identity = identity
