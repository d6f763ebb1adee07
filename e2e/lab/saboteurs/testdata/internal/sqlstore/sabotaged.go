package sqlstore

import "time"

// pause has others come between two steps.
func pause() { time.Sleep(5 * time.Millisecond) }
