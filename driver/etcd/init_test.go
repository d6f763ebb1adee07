package etcd_test

import (
	"context"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/segment"
)

func TestInitTogether(t *testing.T) {
	for name, create := range map[string]func(context.Context, *etcd.Options) error{
		"store": func(ctx context.Context, o *etcd.Options) error {
			return openDB(t, shared.Endpoints(), o).Init(ctx, []segment.Tag{order})
		},
		"registry": func(ctx context.Context, o *etcd.Options) error {
			return openDB(t, shared.Endpoints(), o).InitRegistry(ctx)
		},
	} {
		t.Run(name, func(t *testing.T) {
			drivertest.TestInit(t, func(testing.TB) func(context.Context) error {
				o := newOptions()
				return func(ctx context.Context) error { return create(ctx, o) }
			})
		})
	}
}
