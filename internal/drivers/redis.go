package drivers

import (
	"context"
	"log/slog"
	"net/url"
	"strings"

	"github.com/leaf-id/leaf/driver/redis"
)

// LogTo has the client libraries that otherwise write to standard error write to logger,
// at level debug. It holds for the whole process: call it once, before anything is opened.
func LogTo(logger *slog.Logger) { redis.LogTo(logger) }

// redisDrivers returns the drivers of Redis: for each way in which servers may stand to
// each other one, and one over TLS.
func redisDrivers() []driver {
	forms := redisForms()
	drivers := make([]driver, len(forms))
	for i, f := range forms {
		drivers[i] = driver{
			scheme: f.scheme, form: f.form,
			open: func(rest string, o *Options) (Store, error) {
				db, err := openRedis(f.scheme, rest, o.Logger)
				if err != nil {
					return nil, err
				}
				return redisStore{db.Store(), db}, nil
			},
			init: func(ctx context.Context, rest string, o InitOptions) error {
				db, err := openRedis(f.scheme, rest, nil)
				if err != nil {
					return err
				}
				defer db.Close()
				return db.Init(ctx, o.Tags)
			},
			exists: func(ctx context.Context, rest string) (bool, error) {
				db, err := openRedis(f.scheme, rest, nil)
				if err != nil {
					return false, err
				}
				defer db.Close()
				return db.Store().Exists(ctx)
			},
			key: func(rest string) (string, error) {
				c, err := parseRedis(f.scheme, rest)
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
	return append(forms, urlForm{"redis+unix", "redis+unix:///run/redis/redis.sock"})
}

// parseRedis reads a URL of Redis. Its encryption is read here, as for other drivers.
func parseRedis(scheme, rest string) (redis.Config, error) {
	address, params, err := splitQuery(rest)
	if err != nil {
		return redis.Config{}, err
	}
	if err := onlyParams(params, append(redis.Params(), paramCA, paramCert, paramKey)...); err != nil {
		return redis.Config{}, err
	}
	encryption, err := cutTLS(params, strings.HasPrefix(scheme, "rediss"), "write rediss in place of redis")
	if err != nil {
		return redis.Config{}, err
	}
	c, err := redis.Parse(scheme + ":" + address + "?" + params.Encode())
	c.TLS = encryption
	return c, err
}

func openRedis(scheme, rest string, logger *slog.Logger) (*redis.DB, error) {
	c, err := parseRedis(scheme, rest)
	if err != nil {
		return nil, err
	}
	return redis.Open(c, &redis.Options{Logger: logger})
}

// A redisStore closes its DB with itself.
type redisStore struct {
	*redis.Store
	db *redis.DB
}

func (s redisStore) Close() error { return s.db.Close() }

// A redisRegistry closes its DB with itself.
type redisRegistry struct {
	*redis.Registry
	db *redis.DB
}

func (r redisRegistry) Close() error { return r.db.Close() }

func parseRedisRegistry(scheme, rest string) (registrySource, error) {
	address, params, err := splitQuery(rest)
	if err != nil {
		return registrySource{}, err
	}
	terms, err := cutTerms(params, false)
	if err != nil {
		return registrySource{}, err
	}
	c, err := parseRedis(scheme, address+"?"+params.Encode())
	if err != nil {
		return registrySource{}, err
	}
	return registrySource{
		key:   c.Key(),
		terms: terms,
		open: func(o RegistryOptions) (Registry, error) {
			db, err := redis.Open(c, &redis.Options{Logger: o.Logger})
			if err != nil {
				return nil, err
			}
			return redisRegistry{db.Registry(), db}, nil
		},
		init: func(ctx context.Context) error {
			db, err := redis.Open(c, nil)
			if err != nil {
				return err
			}
			defer db.Close()
			return db.InitRegistry(ctx)
		},
		exists: func(ctx context.Context) (bool, error) {
			db, err := redis.Open(c, nil)
			if err != nil {
				return false, err
			}
			defer db.Close()
			return db.Registry().Exists(ctx)
		},
	}, nil
}

// splitQuery splits a URL at the question mark behind its user and password. The
// parameters may be changed.
func splitQuery(rest string) (address string, params url.Values, err error) {
	at := strings.LastIndex(rest, "@") + 1
	hosts, query, _ := strings.Cut(rest[at:], "?")
	params, err = parseParams(query)
	return rest[:at] + hosts, params, err
}
