package ticket_test

import (
	"context"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/ticket"
	"github.com/leaf-id/leaf/segment"
)

// Init asks the servers in turn: several concurrent callers could each be the first on another one.
func TestInitTogether(t *testing.T) {
	for name, layout := range map[string]ticket.Layout{"tickets": {}, "blocks": {Stride: 100}} {
		t.Run(name, func(t *testing.T) {
			drivertest.TestInit(t, func(t testing.TB) func(context.Context) error {
				s := newSet(t, shared[:]...)
				return func(ctx context.Context) error {
					return initTickets(ctx, s.servers(t), layout, []segment.Tag{order})
				}
			})
		})
	}
}
