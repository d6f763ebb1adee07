package load

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// newSleeper returns a function that sleeps, for one goroutine, and one that ends it. Timers of the
// Go runtime wake an idle process up to a millisecond late, which is longer than a server's answer.
// A kernel timer is some 30 µs late, and blocks no thread.
func newSleeper() (sleep func(time.Duration), end func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return time.Sleep, func() {}
	}
	timer := os.NewFile(uintptr(fd), "timer")
	buf := make([]byte, 8)
	return func(d time.Duration) {
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}
		if unix.TimerfdSettime(fd, 0, &spec, nil) != nil {
			time.Sleep(d)
			return
		}
		_, _ = timer.Read(buf) // too early is noticed by the caller
	}, func() { _ = timer.Close() }
}
