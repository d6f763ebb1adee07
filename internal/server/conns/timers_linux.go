package conns

import "time"

// A timer is one of a connection's time limits. It is in no list, or in one.
type timer struct {
	conn       *loopConn
	list       *timers
	prev, next *timer
	at         time.Time
}

// timers are limits of equal length, so the oldest one ends first.
type timers struct {
	length time.Duration
	head   timer // of a ring
	fire   func(c *loopConn)
}

func (l *timers) init(length time.Duration, fire func(c *loopConn)) {
	l.length, l.fire = length, fire
	l.head.prev, l.head.next = &l.head, &l.head
}

// set has t end after the length of the list.
func (l *timers) set(t *timer, now time.Time) {
	t.clear()
	last := l.head.prev
	t.list, t.at, t.prev, t.next = l, now.Add(l.length), last, &l.head
	last.next, l.head.prev = t, t
}

func (t *timer) clear() {
	if t.list == nil {
		return
	}
	t.prev.next, t.next.prev = t.next, t.prev
	t.list, t.prev, t.next = nil, nil, nil
}

// first returns the timer that ends first, or nil.
func (l *timers) first() *timer {
	if l.head.next == &l.head {
		return nil
	}
	return l.head.next
}
