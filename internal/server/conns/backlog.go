package conns

import (
	"sync"
	"time"
)

// How much a client may leave unread before its handler waits; the second where the server is
// crowded.
const (
	maxBacklog   = 16 << 20
	leastBacklog = 64 << 10
)

// piece is how much is written under one time limit.
const piece = 64 << 10

// A backlog is what a client has not read yet: many send a whole pipeline before they read
// the first reply. A goroutine writes it; there is none while it is empty.
type backlog struct {
	conn *stream

	mu      sync.Mutex
	change  sync.Cond
	waiting []byte // not given to the goroutine yet
	size    int    // of all that is unread, what the goroutine has included
	busy    bool   // there is a goroutine
	err     error  // nothing can be written any more
}

func (b *backlog) init(c *stream) {
	b.conn = c
	b.change.L = &b.mu
}

// add appends p. It waits while there is too much.
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
	b.grow(len(p))
	if !b.busy {
		b.busy = true
		go b.write()
	}
	return nil
}

func (b *backlog) limit() int { return b.conn.server.maxUnread() }

// maxUnread is how much a client may leave unread at present.
func (s *Server) maxUnread() int {
	if s.crowded() {
		return leastBacklog
	}
	return maxBacklog
}

func (s *Server) crowded() bool { return s.unread.Load() > s.opts.MaxUnread }

// grow changes the size; b.mu is held.
func (b *backlog) grow(n int) {
	b.size += n
	b.conn.server.unread.Add(int64(n))
}

// write writes the backlog until it is empty.
func (b *backlog) write() {
	for chunk := b.next(); len(chunk) > 0; {
		n := min(len(chunk), piece)
		_ = b.conn.conn.SetWriteDeadline(time.Now().Add(b.conn.server.opts.WriteTimeout)) // fails where Write will
		_, err := b.conn.conn.Write(chunk[:n])
		if !b.wrote(n, err) {
			return
		}
		if chunk = chunk[n:]; len(chunk) == 0 {
			chunk = b.next()
		}
	}
}

// next returns what the goroutine writes next; nothing: it ends.
func (b *backlog) next() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	chunk := b.waiting
	b.waiting = nil
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
		b.err, b.busy, b.waiting = err, false, nil
		n = b.size
	}
	b.grow(-n)
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
