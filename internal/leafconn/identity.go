package leafconn

import (
	"fmt"

	"github.com/leaf-id/leaf/segment"
)

// Expect says which store the servers must have; see [segment.Expecter].
func (c *Conn) Expect(identity string) { c.store.Store(&identity) }

// checkStore reports that a server has another store than the known one, which is that of the
// first answer unless [Conn.Expect] named it. Then another server is asked.
func (c *Conn) checkStore(identity string) error {
	if identity == "" || c.store.CompareAndSwap(nil, &identity) {
		return nil
	}
	if known := *c.store.Load(); known != identity {
		return fmt.Errorf("%w: its identity is %q, that of the known store is %q", segment.ErrForeignStore, identity, known)
	}
	return nil
}
