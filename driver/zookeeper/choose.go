package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/worker"
)

// choose returns the child whose worker ID this server may use.
func (l *Leaf) choose(ctx context.Context, max int64) (child, error) {
	names, err := call(ctx, l.nodes.client, l.list)
	if err != nil {
		return child{}, err
	}
	if name, id := l.highest(names); name != "" {
		c, err := call(ctx, l.nodes.client, func(conn *zk.Conn) (child, error) { return l.inspect(conn, name, id) })
		if err != nil {
			return child{}, err
		}
		if ok, err := l.adopt(ctx, c, max, names); ok || err != nil {
			return c, err
		}
	}
	for range len(names) + 2 { // each name, and worker 0, may be in the way once
		c, err := call(ctx, l.nodes.client, func(conn *zk.Conn) (child, error) { return l.make(conn, max, names) })
		if !errors.Is(err, errUnfit) {
			return c, err
		}
	}
	return child{}, fmt.Errorf("all numbers that zookeeper gave are in use in other names: %w", worker.ErrTaken)
}

// list returns the names in Java Leaf's tree. It makes a missing tree.
func (l *Leaf) list(conn *zk.Conn) ([]string, error) {
	names, err := l.nodes.children(conn, l.nodes.forever())
	if err == nil && len(names) == 0 {
		err = l.nodes.makePath(conn, l.nodes.forever())
	}
	for _, name := range names {
		if _, ok := javaID(name); !ok {
			l.logger.Warn("servers of Java Leaf fail to start on this node: delete it", "path", l.child(name))
		}
	}
	return names, err
}

// highest returns our valid child; "" without one.
func (l *Leaf) highest(names []string) (best string, top int64) {
	top = -1
	for _, name := range names {
		if id, ok := ownID(name, l.address); ok && id > top {
			best, top = name, id
		}
	}
	return best, top
}

// adopt takes over an existing child if that is safe, and reports whether it did. Otherwise the
// caller makes another one.
func (l *Leaf) adopt(ctx context.Context, c child, max int64, names []string) (bool, error) {
	if c.id > max {
		return false, l.runOut(c.id, max)
	}
	if !c.ours() {
		if err := l.checkStill(c); err != nil {
			return false, err
		}
	}
	if c.id == 0 {
		// A server of Java Leaf that found no tree uses worker 0, not its node's number.
		return false, do(ctx, l.nodes.client, func(conn *zk.Conn) error { return l.remove(conn, c) })
	}
	if inUse(names, c) {
		l.logger.Warn("the number of this server's node in zookeeper is in use in another name: making another node",
			"node", l.child(c.name))
		return false, nil
	}
	return true, do(ctx, l.nodes.client, func(conn *zk.Conn) error { return l.ensureNote(conn, c) })
}

// inUse reports whether another name also has the worker ID of c. ZooKeeper gives no number twice,
// but in a copied tree the numbers begin again.
func inUse(names []string, c child) bool {
	for _, name := range names {
		if id, ok := javaID(name); ok && id == c.id && name != c.name {
			return true
		}
	}
	return false
}

// errUnfit is a child whose worker ID must not be used; it was deleted.
var errUnfit = errors.New("unfit worker ID")

// make adds a child. It fails with errUnfit if the worker ID must not be used.
func (l *Leaf) make(conn *zk.Conn, max int64, names []string) (child, error) {
	data, err := javaData(l.address, l.now())
	if err != nil {
		return child{}, err
	}
	path, err := conn.Create(l.child(l.address+"-"), data, zk.FlagSequence, zk.WorldACL(zk.PermAll))
	if err != nil {
		return child{}, err
	}
	name := path[len(l.child("")):]
	id, ok := ownID(name, l.address)
	if !ok {
		return child{}, fmt.Errorf("zookeeper made %s, whose number is not a worker ID", path)
	}
	c, err := l.inspect(conn, name, id)
	switch {
	case err != nil:
		return child{}, err
	case c.version != 0:
		return child{}, l.takenBy(name)
	case id > max:
		err = l.runOut(id, max)
	case id == 0 || inUse(names, c):
		err = errUnfit
	default:
		return c, l.writeNote(conn, c)
	}
	if failed := l.remove(conn, c); failed != nil {
		return child{}, failed
	}
	return child{}, err
}

// remove deletes a child of ours that had no write meanwhile.
func (l *Leaf) remove(conn *zk.Conn, c child) error {
	err := conn.Delete(l.child(c.name), c.version)
	if errors.Is(err, zk.ErrBadVersion) {
		return l.takenBy(c.name)
	}
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// ensureNote makes an empty note about an adopted child.
func (l *Leaf) ensureNote(conn *zk.Conn, c child) error {
	if err := l.nodes.makePath(conn, l.notes()); err != nil {
		return err
	}
	err := create(conn, l.note(c.name), []byte("{}"))
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}
