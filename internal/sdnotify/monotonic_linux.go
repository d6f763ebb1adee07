package sdnotify

import "golang.org/x/sys/unix"

// monotonic returns the time of CLOCK_MONOTONIC in microseconds.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0
	}
	return now.Nano() / 1000
}
