//go:build !leafsabotage

package sabotage

// Broken reports whether a rule is broken.
func Broken(string) bool { return false }
