package conns

import (
	"sync"
	"time"
)

// maxBacklog is how much a client may leave unread before its handler waits. While the budget is
// spent it waits for all.
const maxBacklog = 16 << 20

// piece is how much is written under one time limit.
const piece = 64 << 10

// A backlog holds a client's unread output: many clients send a whole pipeline before they read the
// first reply. A goroutine writes it, and ends when it is empty.
type backlog struct {
	conn *stream

	mu      sync.Mutex
	change  sync.Cond
	waiting []byte // not given to the goroutine yet
	writing int    // memory of the goroutine's part
	charged int    // bytes of the server's budget
	size    int    // of all unread output, including the goroutine's part
	busy    bool   // the goroutine runs
	err     error  // nothing can be written any more
}

func (b *backlog) init(c *stream) {
	b.conn = c
	b.change.L = &b.mu
}

// add appends p. It waits while the backlog is full.
func (b *backlog) add(p []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.err == nil && b.size > 0 && b.size+len(p) > b.limit() {
		b.change.Wait()
	}
	if b.err != nil {
		return b.err
	}
	b.waiting = append(b.waiting, p...)
	b.size += len(p)
	b.charge()
	if !b.busy {
		b.busy = true
		go b.write()
	}
	return nil
}

func (b *backlog) limit() int { return b.conn.server.maxUnread(b.conn.session) }

// maxUnread is how much a client may leave unread at present: nothing, until it may idle.
func (s *Server) maxUnread(client Session) int {
	if s.opts.Budget.Spent() || client == nil || !client.MayIdle() {
		return 0
	}
	return maxBacklog
}

// charge keeps the server's budget at the memory that the backlog takes; b.mu is held.
func (b *backlog) charge() {
	memory := cap(b.waiting) + b.writing
	b.conn.server.opts.Budget.Add(int64(memory - b.charged))
	b.charged = memory
}

// write writes the backlog until it is empty.
func (b *backlog) write() {
	opts := &b.conn.server.opts
	begun := false
	for chunk := b.next(); len(chunk) > 0; begun = true {
		n := min(len(chunk), piece)
		if !begun || !opts.Budget.Spent() { // else the client has this time for all
			_ = b.conn.conn.SetWriteDeadline(time.Now().Add(opts.WriteTimeout)) // fails where Write will
		}
		_, err := b.conn.conn.Write(chunk[:n])
		if !b.wrote(n, err) {
			return
		}
		if chunk = chunk[n:]; len(chunk) == 0 {
			chunk = b.next()
		}
	}
}

// next returns the goroutine's next part; empty: it ends.
func (b *backlog) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	chunk := b.waiting
	b.waiting = nil
	b.writing = cap(chunk)
	b.charge()
	if len(chunk) == 0 {
		_ = b.conn.conn.SetWriteDeadline(time.Time{}) // fails where Write will
		b.busy = false
		b.change.Broadcast()
	}
	return chunk
}

// wrote takes in that n bytes were written, and reports whether to go on.
func (b *backlog) wrote(n int, err error) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.err, b.busy, b.waiting, b.writing = err, false, nil, 0
		b.charge()
		n = b.size
	}
	b.size -= n
	b.change.Broadcast()
	return err == nil
}

// empty reports whether all was written.
func (b *backlog) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.busy && b.err == nil
}

// wait waits until all was written, or cannot be.
func (b *backlog) wait() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.busy {
		b.change.Wait()
	}
	return b.err
}
