//go:build !linux

package sdnotify

// monotonic has no use without systemd.
func monotonic() int64 { return 0 }
