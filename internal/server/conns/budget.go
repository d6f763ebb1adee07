package conns

import "sync/atomic"

// DefaultBudget is the limit of a server's own budget.
const DefaultBudget = 64 << 20

// A Budget bounds the memory that unsent replies and unserved input take, of all servers and front
// ends that share it. Nothing waits for it: who finds it spent makes no further output. Its methods
// are safe for concurrent use.
type Budget struct {
	limit int64
	used  atomic.Int64
}

// NewBudget returns a budget of limit bytes. A nil one has no limit.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// Add charges n bytes, or gives them back where n is negative.
func (b *Budget) Add(n int64) {
	if n != 0 && b != nil {
		b.used.Add(n)
	}
}

// Spent reports whether the budget is used up.
func (b *Budget) Spent() bool { return b != nil && b.used.Load() >= b.limit }
