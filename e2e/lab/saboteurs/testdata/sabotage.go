package leaf

import (
	"os"
	"sync/atomic"
)

// broken is the rule that is broken. A server reads it from its environment.
var broken atomic.Pointer[string]

func init() { Break(os.Getenv("LEAFLAB_SABOTAGE")) }

// Break breaks a rule, in place of any other.
func Break(rule string) { broken.Store(&rule) }

// Broken reports whether a rule is broken.
func Broken(rule string) bool { return *broken.Load() == rule }
