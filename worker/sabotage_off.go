//go:build !leafsabotage

package worker

// sabotaged reports whether a rule is broken on purpose, which builds for tests can have.
func sabotaged(string) bool { return false }
