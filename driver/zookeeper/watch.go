package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf"
)

// watchPause is how long a watch that was lost with its connection stays away.
const watchPause = time.Second

// Watch returns a channel that is closed when somebody else has written the cell of a
// worker, and when ctx or the registry has ended. A connection that is lost meanwhile
// is no reason: the cell is looked at again.
func (c *cells) Watch(ctx context.Context, id int64) (<-chan struct{}, error) {
	return c.watch(ctx, id, nil)
}

// watch also closes the channel when taken is closed.
func (c *cells) watch(ctx context.Context, id int64, taken <-chan struct{}) (<-chan struct{}, error) {
	v, err := wrap(c, "watch", id, func() (view, error) { return c.look(ctx, id) })
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{})
	started := c.client.spawn(func() {
		defer close(changed)
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.client.ctx, cancel)()
		for c.pause(ctx, taken, v) {
			next, err := c.look(ctx, id)
			switch {
			case err != nil:
				v.event = nil // to be looked at again
			case next.differs(v) && !next.ours:
				return
			default:
				v = next
			}
		}
	})
	if !started {
		return nil, fmt.Errorf("watch record of worker %d in %s: %w", id, c.root, leaf.ErrClosed)
	}
	return changed, nil
}

// A view is a cell as it was looked at.
type view struct {
	created int64
	version int32
	ours    bool
	event   <-chan zk.Event // delivers when the cell changes; nil: nobody will
}

func (v view) differs(w view) bool { return v.created != w.created || v.version != w.version }

// look reads the cell and has a change reported.
func (c *cells) look(ctx context.Context, id int64) (view, error) {
	return call(ctx, c.client, func(conn *zk.Conn) (view, error) {
		path := c.cell(id)
		for {
			text, stat, event, err := conn.GetW(path)
			if err == nil {
				return view{stat.Czxid, stat.Version, c.wrote(id, text), event}, nil
			}
			if !errors.Is(err, zk.ErrNoNode) {
				return view{}, err
			}
			exists, _, event, err := conn.ExistsW(path)
			if err != nil || !exists {
				return view{version: absent, event: event}, err
			}
		}
	})
}

// pause returns true when it is time to look again, false when the watch has ended.
func (c *cells) pause(ctx context.Context, taken <-chan struct{}, v view) bool {
	var retry <-chan time.Time
	if v.event == nil {
		retry = time.After(watchPause)
	}
	select {
	case <-v.event:
	case <-retry:
	case <-taken:
		return false
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
