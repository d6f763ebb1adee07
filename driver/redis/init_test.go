package redis_test

import (
	"context"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/segment"
)

func TestInitTogether(t *testing.T) {
	for name, create := range map[string]func(context.Context, *kv.DB) error{
		"store":    func(ctx context.Context, db *kv.DB) error { return db.Init(ctx, []segment.Tag{order}) },
		"registry": func(ctx context.Context, db *kv.DB) error { return db.InitRegistry(ctx) },
	} {
		for kind, url := range map[string]string{"single": shared.URL(), "cluster": cluster.URL()} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				drivertest.TestInit(t, func(t testing.TB) func(context.Context) error {
					config := fresh(t, url)
					return func(ctx context.Context) error { return create(ctx, open(t, config)) }
				})
			})
		}
	}
}
