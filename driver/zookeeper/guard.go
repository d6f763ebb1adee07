package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/worker"
)

// keepUploading uploads the time to the child of a, and ends a when another server writes to that
// child. It returns then, or with the registry. Uploads begin with the lease: a server with a
// wrongly configured address must not disturb the owner while it waits for a lease that it will not
// get.
func (l *Leaf) keepUploading(a *assignment, c child) {
	ticker := time.NewTicker(l.opts.UploadEvery)
	defer ticker.Stop()
	leased := a.leased
	for {
		if c.changed == nil && a.err() == nil { // else an upload has found out already
			c = l.uploadCall(a, c, l.watchChild)
		}
		if a.err() != nil {
			return
		}
		select {
		case <-l.nodes.client.ctx.Done():
			return
		case <-c.changed:
			c.changed = nil
			continue
		case <-leased:
			leased = nil
		case <-ticker.C:
			if leased != nil {
				continue
			}
		}
		c = l.uploadCall(a, c, l.upload)
	}
}

// uploadCall makes a call that returns c as it then is. It ends a if the call fails because
// another server uses its worker ID.
func (l *Leaf) uploadCall(a *assignment, c child, f func(*zk.Conn, child) (child, error)) child {
	ctx, cancel := context.WithTimeout(l.nodes.client.ctx, l.opts.SessionTimeout)
	defer cancel()
	now, err := call(ctx, l.nodes.client, func(conn *zk.Conn) (child, error) { return f(conn, c) })
	switch {
	case err == nil:
		return now
	case errors.Is(err, errGone):
		err = fmt.Errorf("%w: %s was deleted, so its number may have been given away", worker.ErrTaken, l.child(a.name))
	case !errors.Is(err, worker.ErrTaken):
		l.logger.Warn("no upload to zookeeper", "node", l.child(a.name), "err", err)
		return c
	}
	l.logger.Error("the worker ID is in use elsewhere", "worker", a.id, "err", err)
	a.why = err
	close(a.lost)
	return c
}

// watchChild checks who wrote last, and watches for the next write.
func (l *Leaf) watchChild(conn *zk.Conn, c child) (child, error) {
	_, stat, changed, err := conn.GetW(l.child(c.name))
	if errors.Is(err, zk.ErrNoNode) {
		return child{}, errGone
	}
	if err == nil && !c.same(child{created: stat.Czxid, version: stat.Version}) {
		c, err = l.findWriter(conn, c)
	}
	c.changed = changed
	return c, err
}

// upload writes the present time to c, never less than was written before.
func (l *Leaf) upload(conn *zk.Conn, c child) (child, error) {
	now := l.now()
	if now < c.time {
		return c, nil
	}
	err := l.write(conn, c, now)
	if errors.Is(err, zk.ErrBadVersion) || errors.Is(err, zk.ErrNoNode) {
		found, err := l.findWriter(conn, c)
		if err == nil {
			err = l.ensureNote(conn, c)
		}
		return found, err // the next upload knows the version
	}
	c.version, c.time = c.version+1, now
	return c, err
}

// now returns the wall clock in Unix milliseconds, but at most the time that has passed since
// OpenLeaf allows: a clock that is far ahead for a moment must not leave a time that keeps Java
// servers from starting.
func (l *Leaf) now() int64 { return min(l.opts.Now().UnixMilli(), l.clock.Now().UnixMilli()) }

// findWriter finds the writer of an unknown version of c: this registry, in an upload with a lost
// answer, or another server. It returns the present c.
func (l *Leaf) findWriter(conn *zk.Conn, c child) (child, error) {
	now, err := l.inspect(conn, c.name, c.id)
	switch {
	case err != nil:
		return child{}, err
	case now.same(c):
		return c, nil
	case now.created == c.created && now.ours() && now.noted.Writer == l.writer:
		now.time, now.changed = max(now.time, c.time), c.changed
		return now, nil
	}
	return child{}, l.takenBy(c.name)
}
