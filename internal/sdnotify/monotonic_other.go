//go:build !linux

package sdnotify

// monotonic is of no use where there is no systemd.
func monotonic() int64 { return 0 }
