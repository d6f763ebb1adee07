package drivers

import (
	"log/slog"
	"strings"

	"github.com/leaf-id/leaf/driver/redis"
)

// LogTo has the client libraries that otherwise write to standard error write to logger,
// at level debug. It holds for the whole process: call it once, before anything is opened.
func LogTo(logger *slog.Logger) { redis.LogTo(logger) }

// parseRedis reads a URL of Redis. Its encryption is read here, as for other drivers.
func parseRedis(u *target) (*Backend, error) {
	if err := u.query(append(redis.Params(), paramCA, paramCert, paramKey)...); err != nil {
		return nil, err
	}
	encryption, err := u.cutTLS(strings.HasPrefix(u.scheme, "rediss"), "write rediss in place of redis")
	if err != nil {
		return nil, err
	}
	c, err := redis.Parse(u.scheme + ":" + u.address + "?" + u.params.Encode())
	if err != nil {
		return nil, err
	}
	c.TLS = encryption
	db, err := redis.Open(c, &redis.Options{Logger: u.log})
	if err != nil {
		return nil, err
	}
	return dbBackend(c.Key(), db, db.Store(), db.Registry()), nil
}
