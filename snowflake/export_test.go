package snowflake

// TickUp is tickUp, for tests.
func (l Layout) TickUp(ms int64) int64 { return l.tickUp(ms) }

// TickDown is tickDown, for tests.
func (l Layout) TickDown(ms int64) int64 { return l.tickDown(ms) }
