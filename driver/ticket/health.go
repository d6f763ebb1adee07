package ticket

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/failures"
	"github.com/leaf-id/leaf/segment"
)

// How long a server that failed is left alone: twice as long after each failure in a
// row, with jitter.
const (
	minPause = 100 * time.Millisecond
	maxPause = 10 * time.Second
)

// A health is the store's record of a server; the store's mutex guards it.
type health struct {
	down    bool
	failed  int // times in a row
	retryAt time.Time
	probing bool // a goroutine is
	last    string
}

// order returns the members in the order of trying: the live ones in turn, then the others. It
// starts the due checks of failed ones.
func (s *Store) order() (up, down []*member) {
	turn := s.turn.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for i := range s.members {
		m := s.members[(turn+uint64(i))%uint64(len(s.members))]
		if !m.health.down {
			up = append(up, m)
			continue
		}
		down = append(down, m)
		if !m.health.probing && !now.Before(m.health.retryAt) && s.ctx.Err() == nil {
			m.health.probing = true
			s.probes.Go(func() { s.probe(m) })
		}
	}
	return up, down
}

// visit has do ask the servers in the order of trying, until it is done. It asks those left out only
// if no other one has answered. The error is nil once a server has.
func (s *Store) visit(ctx context.Context, do func(m *member, hasty bool) (done bool, err error)) error {
	if err := s.usable(ctx); err != nil {
		return err
	}
	up, down := s.order()
	answered := false
	var failed failures.List
	for i, m := range slices.Concat(up, down) {
		if i == len(up) && answered {
			break // a failed server has nothing to add
		}
		done, err := do(m, i < len(up)-1)
		if done {
			return nil
		}
		if err == nil {
			answered = true
			continue
		}
		failed = append(failed, m.wrapErr(err))
		if gone := s.usable(ctx); gone != nil { // not the server's fault
			return fmt.Errorf("%w: %w", gone, failed)
		}
		if !errors.Is(err, errLeftOut) && !errors.Is(err, errQueued) { // the first is noted, the second no failure
			s.failed(m, err)
		}
	}
	if answered {
		return nil
	}
	return fmt.Errorf("no ticket server is fit for use: %w", failed)
}

// probe finds out whether a server that failed is fit again. No caller waits for it.
func (s *Store) probe(m *member) {
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	defer cancel()
	m.facts.Store(nil)
	err := s.use(ctx, m, func(*sql.Conn, *facts) error { return nil }) // which inspects it
	if err != nil && s.ctx.Err() == nil {
		s.failed(m, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m.health.probing = false
	if err == nil && m.health.down {
		m.health.down = false
		s.logger.Info("ticket server put back", "server", m.Name)
	}
}

// succeeded notes that a server has dealt IDs.
func (s *Store) succeeded(m *member) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.health.down {
		s.logger.Info("ticket server put back", "server", m.Name)
	}
	m.health = health{probing: m.health.probing}
}

func (s *Store) isDown(m *member) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return m.health.down
}

// failed leaves a server out for a while, and logs a new failure. Concurrent calls that fail together
// count as one failure.
func (s *Store) failed(m *member, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := &m.health
	if h.down && !time.Now().After(h.retryAt) {
		return
	}
	pause := min(minPause<<min(h.failed, 10), maxPause)
	h.failed++
	h.retryAt = time.Now().Add(pause/2 + rand.N(pause/2+1))
	told := explain(err)
	if !h.down || h.last != told.Error() {
		s.logger.Warn("ticket server left out", "server", m.Name, "err", told)
	}
	h.down, h.last = true, told.Error()
}

// admit compares a server with the servers in use, and adds it. Of two generations the later one
// counts.
func (s *Store) admit(m *member, f *facts) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.members {
		known := other.facts.Load()
		if other == m || known == nil {
			continue
		}
		switch cmp.Compare(f.generation, known.generation) {
		case -1:
			return fmt.Errorf("%w: the server is of an older generation than %s: it was left out of a resize, or a backup was put in place: %w",
				leaf.ErrInvalid, other.Name, segment.ErrNeedsResize)
		case +1:
			other.facts.Store(nil)
			continue
		}
		if f.cluster != known.cluster {
			return fmt.Errorf("%w: the server belongs to another set than %s: correct the URL", leaf.ErrInvalid, other.Name)
		}
		if f.number == known.number {
			return fmt.Errorf("%w: the server has the same number as %s: the URL names one twice, or one was copied from the other: "+
				"both would deal the same IDs", leaf.ErrInvalid, other.Name)
		}
	}
	m.facts.Store(f)
	return nil
}
