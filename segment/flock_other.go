//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package segment

import "os"

// lockFile does nothing: this system has no lock that ends with the process.
func lockFile(*os.File) error { return nil }

// syncFolder does nothing: a folder cannot be synced here.
func syncFolder(string) error { return nil }
