//go:build !linux && !darwin && !freebsd

package filelock

// remoteKind: this operating system does not say; the folder passes as local.
func remoteKind(string) (string, error) { return "", nil }
