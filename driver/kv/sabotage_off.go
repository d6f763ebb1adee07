//go:build !leafsabotage

package kv

// sabotaged returns the backend, which builds for tests can break on purpose.
func sabotaged(b Backend) Backend { return b }
