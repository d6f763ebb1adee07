package zookeeper

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-id/leaf/driver/kv"
)

// Open returns the store and the pool of worker IDs of that name on the ZooKeeper whose
// servers are given as host:port. It is for fleets without a server of Java Leaf. It does
// not wait for a connection: what is wrong shows at the first call.
func Open(servers []string, name string, opts *Options) (*kv.DB, error) {
	o := opts.withDefaults()
	b, err := newBackend(servers, name, o)
	if err != nil {
		return nil, err
	}
	return kv.New(pool{b}, nil), nil
}

// A pool refuses to share worker IDs with servers of Java Leaf, which do not look at its
// records.
type pool struct{ *backend }

var _ kv.Checker = pool{}

// Check reports that there are servers of Java Leaf.
func (p pool) Check(ctx context.Context) error {
	_, err := call(ctx, p.client, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, p.checkAlone(conn) })
	return err
}

func (p pool) checkAlone(conn *zk.Conn) error {
	if err := p.sync(conn); err != nil {
		return err
	}
	names, _, err := conn.Children(p.forever())
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return p.checkChroot(conn)
	case err != nil:
		return err
	case len(names) > 0:
		return fmt.Errorf("%s has %d children, %s for one: servers of Java Leaf, or with layout=leaf, use the worker IDs in "+
			"these names without looking at the pool's: use layout=leaf as well, or, once all of them are stopped for good, "+
			"delete %[1]s", p.forever(), len(names), names[0])
	}
	return nil
}
