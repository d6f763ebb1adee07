//go:build !linux

package load

import "time"

func newSleeper() (sleep func(time.Duration), end func()) { return time.Sleep, func() {} }
