package leafconn

import (
	"context"
	"errors"
	"fmt"

	leafv1 "github.com/leaf-id/leaf/api/leaf/v1"
	"github.com/leaf-id/leaf/segment"
)

// Expect says which store the servers must have; see [segment.Expecter].
func (c *Conn) Expect(identity string) { c.store.Store(&identity) }

// Identities asks a server for the identity of its store, under the name "store". The map is empty
// where the server does not know it, or may not tell it to the holder of this token.
func (c *Conn) Identities(ctx context.Context) (map[string]string, error) {
	res, err := repeatable(ctx, c, func(ctx context.Context, srv *server) (*leafv1.StatusResponse, error) {
		return srv.admin.Status(ctx, &leafv1.StatusRequest{})
	})
	if identity := res.GetStore().GetIdentity(); identity != "" {
		return map[string]string{"store": identity}, nil
	}
	if errors.Is(err, ErrDenied) {
		err = nil
	}
	return nil, err
}

// checkStore reports that s, which names this store, has another one. The first answer, or
// [Conn.Expect], sets the known one. After an error the call moves to another server.
func (c *Conn) checkStore(s *server, identity string) error {
	if identity == "" {
		return nil
	}
	c.store.CompareAndSwap(nil, &identity)
	known := *c.store.Load()
	s.proven.Store(known == identity)
	if known != identity {
		return fmt.Errorf("%w: its identity is %q, that of the known store is %q", segment.ErrForeignStore, identity, known)
	}
	return nil
}
