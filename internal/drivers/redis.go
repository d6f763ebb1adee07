package drivers

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/url"
	"strconv"
	"strings"

	"github.com/leaf-id/leaf/driver/redis"
)

// LogTo has the client libraries that otherwise write to standard error write to logger,
// at level debug. It holds for the whole process: call it once, before anything is opened.
func LogTo(logger *slog.Logger) { redis.LogTo(logger) }

// parseRedis reads one of
//
//	//user:password@host:6379/0
//	//user:password@h1:26379,h2:26379/MASTER/0    redis+sentinel
//	//user:password@h1:6379,h2:6379               redis+cluster
//	//user:password@/run/redis/redis.sock?db=0    redis+unix
func parseRedis(u *target) (*Backend, error) {
	c, err := u.redisConfig()
	if err != nil {
		return nil, err
	}
	db, err := redis.Open(c, &redis.Options{Logger: u.log})
	if err != nil {
		return nil, err
	}
	master := ""
	if c.Mode == redis.Sentinel {
		master = "/" + c.Master
	}
	key := fmt.Sprintf("//%s%s/%d?prefix=%s", sortedList(c.Addrs), master, c.DB, c.Prefix)
	return dbBackend(key, db), nil
}

// redisConfig reads a URL as far as its parts are well-formed.
func (u *target) redisConfig() (c redis.Config, err error) {
	if err := u.query("prefix", "wait", "waitaof", "wait_timeout", "durability", "sentinel_user", "sentinel_password", "db",
		paramCA, paramCert, paramKey); err != nil {
		return c, err
	}
	kind, secure := strings.CutPrefix(u.scheme, "rediss")
	kind = strings.TrimPrefix(kind, "redis")
	if c.TLS, err = u.cutTLS(secure, "write rediss in place of redis"); err != nil {
		return c, err
	}
	c.Mode = map[string]redis.Mode{"+sentinel": redis.Sentinel, "+cluster": redis.Cluster}[kind]
	if err := cmp.Or(u.setRedisServers(&c, kind == "+unix"), u.setRedis(&c)); err != nil {
		return c, err
	}
	c.Username, c.Password = u.user, u.password
	return c, nil
}

// setRedisServers sets the servers, or the path of a socket, and the database.
func (u *target) setRedisServers(c *redis.Config, socket bool) (err error) {
	if socket {
		if err := u.cutUser(); err != nil {
			return err
		}
		path, err := url.PathUnescape(u.address)
		if err != nil || !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
			return malformed("the path of the socket is missing or malformed")
		}
		c.Addrs = []string{path}
		c.DB, err = u.number("db", 0, math.MaxInt32)
		return err
	}
	if u.params.Has("db") {
		return malformed("db is for the path of a socket")
	}
	port := "6379"
	if c.Mode == redis.Sentinel {
		port = "26379"
	}
	var db string
	if c.Addrs, db, err = u.cluster(port); err != nil {
		return err
	}
	if c.Mode == redis.Sentinel {
		c.Master, db, _ = strings.Cut(db, "/")
	}
	if db = strings.TrimSuffix(db, "/"); db == "" {
		return nil
	}
	if c.DB, err = strconv.Atoi(db); err != nil {
		return invalid("the database is not a number: write it as in redis://host:6379/0")
	}
	return nil
}

// setRedis applies the other parameters.
func (u *target) setRedis(c *redis.Config) (err error) {
	c.Prefix = cmp.Or(u.params.Get("prefix"), redis.DefaultPrefix)
	c.SentinelUsername, c.SentinelPassword = u.params.Get("sentinel_user"), u.params.Get("sentinel_password")
	if c.Volatile = u.params.Has("durability"); c.Volatile && u.params.Get("durability") != "none" {
		return malformed("the only value of durability is none")
	}
	if c.Wait, err = u.number("wait", 0, math.MaxInt32); err != nil {
		return err
	}
	if u.params.Has("waitaof") {
		local, replicas, _ := strings.Cut(u.params.Get("waitaof"), ",")
		var err2 error
		c.WaitLocal, err = strconv.Atoi(local)
		if c.WaitReplicas, err2 = strconv.Atoi(replicas); err != nil || err2 != nil {
			return malformed("waitaof is malformed: write waitaof=L,N")
		}
	}
	return u.duration("wait_timeout", &c.WaitTimeout)
}
