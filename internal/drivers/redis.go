package drivers

import (
	"context"
	"log/slog"
	"strings"

	"github.com/leaf-id/leaf/driver/redis"
)

// redisDrivers returns the drivers of Redis: for each way in which servers may stand to
// each other one, and one over TLS.
func redisDrivers() []driver {
	forms := redisForms()
	drivers := make([]driver, len(forms))
	for i, f := range forms {
		drivers[i] = driver{
			scheme: f.scheme, form: f.form,
			open: func(rest string, o *Options) (Store, error) { return openRedis(f.scheme+":"+rest, o.Logger) },
			init: func(ctx context.Context, rest string, o InitOptions) error {
				c, err := redis.Parse(f.scheme + ":" + rest)
				if err != nil {
					return err
				}
				return redis.InitStore(ctx, c, o.Tags)
			},
			exists: func(ctx context.Context, rest string) (bool, error) {
				c, err := redis.Parse(f.scheme + ":" + rest)
				if err != nil {
					return false, err
				}
				return redis.ExistsStore(ctx, c)
			},
			key: func(rest string) (string, error) {
				c, err := redis.Parse(f.scheme + ":" + rest)
				return c.Key(), err
			},
		}
	}
	return drivers
}

// redisRegistryDrivers is the same for registries.
func redisRegistryDrivers() []registryDriver {
	forms := redisForms()
	drivers := make([]registryDriver, len(forms))
	for i, f := range forms {
		drivers[i] = registryDriver{f.scheme, f.form, func(rest string) (registrySource, error) {
			return parseRedisRegistry(f.scheme, rest)
		}}
	}
	return drivers
}

type urlForm struct{ scheme, form string }

func redisForms() []urlForm {
	forms := []urlForm{
		{"redis", "redis://host:6379"},
		{"redis+sentinel", "redis+sentinel://host:26379/MASTER"},
		{"redis+cluster", "redis+cluster://host:6379"},
	}
	for _, f := range forms {
		secure := strings.Replace(f.scheme, "redis", "rediss", 1)
		forms = append(forms, urlForm{secure, strings.Replace(f.form, f.scheme, secure, 1)})
	}
	return forms
}

func openRedis(url string, logger *slog.Logger) (Store, error) {
	c, err := redis.Parse(url)
	if err != nil {
		return nil, err
	}
	return redis.OpenStore(c, &redis.Options{Logger: logger})
}

func parseRedisRegistry(scheme, rest string) (registrySource, error) {
	plain, terms, err := cutQueryTerms(rest)
	if err != nil {
		return registrySource{}, err
	}
	c, err := redis.Parse(scheme + ":" + plain)
	if err != nil {
		return registrySource{}, err
	}
	return registrySource{
		key:   c.Key(),
		terms: terms,
		open: func(o RegistryOptions) (Registry, error) {
			return redis.OpenRegistry(c, &redis.Options{Logger: o.Logger})
		},
		init:   func(ctx context.Context) error { return redis.InitRegistry(ctx, c) },
		exists: func(ctx context.Context) (bool, error) { return redis.ExistsRegistry(ctx, c) },
	}, nil
}

// cutQueryTerms takes the parameters of every worker URL out of a URL whose query begins
// at the first question mark after its user and password.
func cutQueryTerms(rest string) (string, Terms, error) {
	at := strings.LastIndex(rest, "@") + 1
	address, query, ok := strings.Cut(rest[at:], "?")
	if !ok {
		return rest, Terms{}, nil
	}
	params, err := parseParams(query)
	if err != nil {
		return "", Terms{}, err
	}
	terms, err := cutTerms(params, false)
	if err != nil {
		return "", Terms{}, err
	}
	plain := rest[:at] + address
	if len(params) > 0 {
		plain += "?" + params.Encode()
	}
	return plain, terms, nil
}
