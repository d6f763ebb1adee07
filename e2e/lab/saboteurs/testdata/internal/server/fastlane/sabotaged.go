package fastlane

import "sync/atomic"

var (
	answers [1 << 16]byte // which all sessions write to
	forgot  atomic.Int64  // the answers to requests that waited; the session forgets every other one
)
