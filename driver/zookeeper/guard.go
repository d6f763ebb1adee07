package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/worker"
)

// guard uploads the time to the child of s, and stops s when somebody else writes to
// that child. It ends then, or with the registry. Uploads begin once the lease is
// held: a server that was given the address of another one by mistake must not
// disturb that one while it waits for a lease that it will not get.
func (l *Leaf) guard(s *seat, c child) {
	ticker := time.NewTicker(l.opts.UploadEvery)
	defer ticker.Stop()
	leased := s.leased
	var changed <-chan zk.Event
	for {
		if changed == nil {
			c, changed = l.guardLook(s, c)
		}
		if s.err() != nil {
			return
		}
		select {
		case <-l.nodes.client.ctx.Done():
			return
		case <-changed:
			changed = nil
			continue
		case <-leased:
			leased = nil
		case <-ticker.C:
			if leased != nil {
				continue
			}
		}
		c = l.upload(s, c)
	}
}

// A glance is a child of ours as the guard found it.
type glance struct {
	child child
	event <-chan zk.Event // delivers when somebody writes again
}

// guardLook checks who wrote last. It returns c as it is, and a channel that delivers
// when somebody writes again; nil if the server does not answer.
func (l *Leaf) guardLook(s *seat, c child) (child, <-chan zk.Event) {
	g, err := guardCall(l, func(conn *zk.Conn) (glance, error) {
		_, stat, event, err := conn.GetW(l.child(c.name))
		if errors.Is(err, zk.ErrNoNode) {
			return glance{}, errGone
		}
		if err != nil {
			return glance{}, err
		}
		if c.same(child{created: stat.Czxid, version: stat.Version}) {
			return glance{c, event}, nil
		}
		settled, err := l.settle(conn, c)
		return glance{settled, event}, err
	})
	if err != nil {
		l.judge(s, err)
		return c, nil
	}
	return g.child, g.event
}

// upload gives c the present time, never less than it was given before, and returns c
// as it is then.
func (l *Leaf) upload(s *seat, c child) child {
	now := l.now()
	if now < c.time {
		return c
	}
	written, err := guardCall(l, func(conn *zk.Conn) (child, error) {
		err := l.write(conn, c, now)
		if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
			settled, err := l.settle(conn, c)
			if err == nil {
				err = l.ensureNote(conn, c)
			}
			return settled, err // the next upload knows the version
		}
		done := c
		done.version, done.time = c.version+1, now
		return done, err
	})
	if err != nil {
		l.judge(s, err)
		return c
	}
	return written
}

// now returns the wall clock in Unix milliseconds, but no later than the time since
// OpenLeaf says: a clock that is far ahead for a moment must not leave a time behind
// that keeps Java servers from starting.
func (l *Leaf) now() int64 { return min(l.opts.Now().UnixMilli(), l.clock.Now().UnixMilli()) }

// settle finds out who wrote a version of c that is not the known one: this registry,
// in an upload whose answer was lost, or somebody else. It returns c as it is now.
func (l *Leaf) settle(conn *zk.Conn, c child) (child, error) {
	now, err := l.inspect(conn, c.name, c.id)
	switch {
	case err != nil:
		return child{}, err
	case now.same(c):
		return c, nil
	case now.created == c.created && now.ours() && now.noted.Writer == l.writer:
		now.time = max(now.time, c.time)
		return now, nil
	}
	return child{}, l.takenBy(c.name)
}

// judge stops s if err says that somebody else uses its worker ID.
func (l *Leaf) judge(s *seat, err error) {
	switch {
	case errors.Is(err, errGone):
		err = fmt.Errorf("%w: somebody deleted %s, and so may have given its number away", worker.ErrTaken, l.child(s.name))
	case !errors.Is(err, worker.ErrTaken):
		l.logger.Warn("no upload to zookeeper", "node", l.child(s.name), "err", err)
		return
	}
	l.logger.Error("the worker ID is in use elsewhere", "worker", s.id, "err", err)
	s.why = err
	close(s.lost)
}

// guardCall makes a call with the patience of the guard.
func guardCall[T any](l *Leaf, do func(*zk.Conn) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(l.nodes.client.ctx, l.opts.SessionTimeout)
	defer cancel()
	return call(ctx, l.nodes.client, do)
}
