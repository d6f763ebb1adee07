package leafconn

import (
	"fmt"

	"github.com/leaf-id/leaf/segment"
)

// Expect says which store the servers must have; see [segment.Expecter].
func (c *Conn) Expect(identity string) { c.store.Store(&identity) }

// checkStore reports a server of another store. The first answer, or [Conn.Expect], sets the known
// one. After an error the call moves to another server.
func (c *Conn) checkStore(identity string) error {
	if identity == "" || c.store.CompareAndSwap(nil, &identity) {
		return nil
	}
	if known := *c.store.Load(); known != identity {
		return fmt.Errorf("%w: its identity is %q, that of the known store is %q", segment.ErrForeignStore, identity, known)
	}
	return nil
}
