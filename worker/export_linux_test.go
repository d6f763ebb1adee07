package worker

// Identity is for tests.
var Identity = identity

// Proves reports whether a file proves that the process before is dead.
func (s *StateFile) Proves() bool { return s.identity != "" }
