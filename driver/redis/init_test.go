package redis_test

import (
	"context"
	"testing"

	"github.com/leaf-id/leaf/driver/drivertest"
	"github.com/leaf-id/leaf/driver/redis"
	"github.com/leaf-id/leaf/segment"
)

func TestInitTogether(t *testing.T) {
	for name, create := range map[string]func(context.Context, redis.Config) error{
		"store": func(ctx context.Context, config redis.Config) error {
			return redis.InitStore(ctx, config, []segment.Tag{order})
		},
		"registry": redis.InitRegistry,
	} {
		for kind, url := range map[string]string{"single": shared.URL(), "cluster": cluster.URL()} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				drivertest.TestInit(t, func(t testing.TB) func(context.Context) error {
					config := fresh(t, url)
					return func(ctx context.Context) error { return create(ctx, config) }
				})
			})
		}
	}
}
