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

// LogTo redirects the messages that client libraries write to standard error to logger, at level
// debug. It holds for the whole process: call it once, before anything is opened.
func LogTo(logger *slog.Logger) { redis.LogTo(logger) }

// openRedis reads one of
//
//	//user:password@host:6379/0
//	//user:password@h1:26379,h2:26379/MASTER/0    redis+sentinel
//	//user:password@h1:6379,h2:6379               redis+cluster
//	//user:password@/run/redis/redis.sock?db=0    redis+unix
func openRedis(u *target) (*Backend, error) {
	c := u.redisConfig()
	master := ""
	if c.Mode == redis.Sentinel {
		master = "/" + c.Master
	}
	u.key = fmt.Sprintf("//%s%s/%d?prefix=%s", sortedList(c.Addrs), master, c.DB, c.Prefix)
	return newBackend(redis.Open(c, &redis.Options{Logger: u.log}))
}

// redisConfig reads a URL as far as its parts are well-formed.
func (u *target) redisConfig() (c redis.Config) {
	kind, secure := strings.CutPrefix(u.scheme, "rediss")
	kind = strings.TrimPrefix(kind, "redis")
	c.TLS = u.tlsConfig(secure, "write rediss in place of redis")
	c.Mode = map[string]redis.Mode{"+sentinel": redis.Sentinel, "+cluster": redis.Cluster}[kind]
	if kind != "+unix" && u.params.Has("db") {
		u.malformed("db is for the path of a socket")
	}
	c.DB = u.number("db", 0, math.MaxInt32)
	if kind == "+unix" {
		u.cutUser()
		path, err := url.PathUnescape(u.address)
		if err != nil || !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
			u.malformed("the path of the socket is missing or malformed")
		}
		c.Addrs = []string{path}
	} else {
		u.redisServers(&c)
	}
	c.Username, c.Password = u.user, u.password
	c.Prefix = cmp.Or(u.text("prefix"), redis.DefaultPrefix)
	c.SentinelUsername, c.SentinelPassword = u.text("sentinel_user"), u.text("sentinel_password")
	if c.Mode != redis.Sentinel && c.SentinelUsername+c.SentinelPassword != "" {
		u.fail(invalid("sentinel_user and sentinel_password are for redis+sentinel"))
	}
	c.Volatile = u.oneOf("durability", "none") != ""
	c.Wait = u.number("wait", 0, math.MaxInt32)
	if text, ok := u.param("waitaof"); ok {
		local, replicas, _ := strings.Cut(text, ",")
		var err1, err2 error
		c.WaitLocal, err1 = strconv.Atoi(local)
		if c.WaitReplicas, err2 = strconv.Atoi(replicas); err1 != nil || err2 != nil {
			u.malformed("waitaof is malformed: write waitaof=L,N")
		}
	}
	u.duration("wait_timeout", &c.WaitTimeout)
	if u.params.Has("wait_timeout") && !u.params.Has("wait") && !u.params.Has("waitaof") {
		u.fail(invalid("wait_timeout is for wait or waitaof: add one of them"))
	}
	return c
}

// redisServers sets the servers and the database.
func (u *target) redisServers(c *redis.Config) {
	port := "6379"
	if c.Mode == redis.Sentinel {
		port = "26379"
	}
	var db string
	c.Addrs, db = u.cluster(port)
	if c.Mode == redis.Sentinel {
		c.Master, db, _ = strings.Cut(db, "/")
	}
	var err error
	if c.DB, err = strconv.Atoi(cmp.Or(strings.TrimSuffix(db, "/"), "0")); err != nil {
		u.fail(invalid("the database is not a number: write it as in redis://host:6379/0"))
	}
}
