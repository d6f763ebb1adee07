package leafconn

import "sync"

var outcomesOf sync.Map

// sabotagedOutcomes has all calls of a connection share their answers.
func sabotagedOutcomes[T any](c *Conn) chan outcome[T] {
	shared, _ := outcomesOf.LoadOrStore(c, make(chan outcome[T], 10_000))
	return shared.(chan outcome[T])
}
