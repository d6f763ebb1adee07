package ticket_test

import (
	"testing"
	"time"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/internal/testserver"
	"github.com/leaf-id/leaf/segment"
)

func TestStore(t *testing.T) {
	layouts := map[string]ticket.Layout{
		"one table":     {},
		"table per tag": {TablePerTag: true},
		"blocks":        {Stride: 4096},
	}
	for name, layout := range layouts {
		t.Run(name, func(t *testing.T) {
			if layout.TablePerTag { // only the names of the tables differ from the layout with one
				testserver.Long(t)
			}
			testStore(t, layout)
		})
	}
}

func testStore(t *testing.T, layout ticket.Layout) {
	drivertest.TestStore(t, func(t testing.TB) drivertest.StoreBackend {
		s := newSet(t, shared[:2]...)
		initSet(t, s.servers(t), layout)
		open := func(t testing.TB) *ticket.Store { return open(t, s.servers(t), layout, patient) }
		b := drivertest.StoreBackend{Open: func(t testing.TB) segment.Store { return open(t) }, Caps: drivertest.StoreCaps{Units: true, NoOptions: true}}
		if layout.Stride == 0 {
			// The suite takes it for certain that an Advance by the step of 2000 draws
			// more than 1000 IDs, and would find that MaxID can still be lowered to 2000.
			admin := open(t)
			b.Open = func(t testing.TB) segment.Store { return plain{open(t)} }
			b.Create = func(t testing.TB, tag segment.Tag) {
				if err := admin.Create(t.Context(), tag); err != nil {
					t.Fatal(err)
				}
			}
		}
		return b
	})
}

// plain hides the Catalog.
type plain struct{ segment.Store }

// patient does not take a busy machine for a dead server.
var patient = &ticket.Options{Timeout: 20 * time.Second}
