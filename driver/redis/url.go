package redis

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// schemes returns the schemes of the URLs that [Parse] reads, without those with
// rediss in place of redis, which are the same over TLS.
func schemes() []string { return []string{"redis", "redis+sentinel", "redis+cluster", schemeSocket} }

const schemeSocket = "redis+unix"

const paramDB = "db"

// Params returns the parameters of such a URL.
func Params() []string {
	return []string{"prefix", "wait", "waitaof", "wait_timeout", "durability", "sentinel_user", "sentinel_password", paramDB}
}

// Parse reads one of
//
//	redis://user:password@host:6379/0
//	redis+sentinel://user:password@host1:26379,host2:26379/MASTER/0
//	redis+cluster://user:password@host1:6379,host2:6379
//	redis+unix://user:password@/run/redis/redis.sock
//
// or, but for the last, the same with rediss in place of redis, over TLS, each with the
// parameters
//
//	prefix=leaf               what the keys begin with
//	wait=N                    replicas that have to hold a write before it counts
//	waitaof=L,N               L=1: the primary, and N replicas, have to have it on disk
//	wait_timeout=1s           how long to wait for that
//	durability=none           accept a server without an append-only file
//	sentinel_user=U sentinel_password=P   what the sentinels want
//	db=N                      the database, where the path is that of a socket
//
// Reserved characters in a user name or password are percent-encoded. Over TLS the
// server's certificate is checked against this machine's authorities, and the client
// shows none: set Config.TLS to have it otherwise. Errors wrap [leaf.ErrInvalid].
func Parse(rawURL string) (Config, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return Config{}, bad("write redis://host:6379, redis+sentinel://host:26379/MASTER or redis+cluster://host:6379")
	}
	c, err := parseScheme(strings.ToLower(scheme))
	if err != nil {
		return Config{}, err
	}
	user, address := "", rest
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		user, address = rest[:at], rest[at+1:]
	}
	address, query, _ := strings.Cut(address, "?")
	if err := cmp.Or(c.parseUser(user), c.parseAddress(strings.ToLower(scheme), address), c.parseParams(query)); err != nil {
		return Config{}, err
	}
	return c.complete()
}

func parseScheme(scheme string) (c Config, err error) {
	plain := scheme
	if rest, ok := strings.CutPrefix(scheme, "rediss"); ok {
		plain = "redis" + rest
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	mode := slices.Index(schemes(), plain)
	switch {
	case mode < 0 || plain == schemeSocket && c.TLS != nil:
		return c, bad("the scheme is none of " + strings.Join(schemes(), ", ") + ", nor, but for the last, one of these with rediss")
	case plain != schemeSocket:
		c.Mode = Mode(mode)
	}
	return c, nil
}

func (c *Config) parseUser(text string) error {
	user, password, _ := strings.Cut(text, ":")
	var err1, err2 error
	c.Username, err1 = url.PathUnescape(user)
	c.Password, err2 = url.PathUnescape(password)
	if err1 != nil || err2 != nil {
		return bad("the user name or the password is not percent-encoded: write %25 for a percent sign")
	}
	return nil
}

func (c *Config) parseAddress(scheme, text string) error {
	if scheme == schemeSocket {
		path, err := url.PathUnescape(text)
		if err != nil || !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
			return bad("the path of the socket is missing or malformed: write redis+unix:///run/redis/redis.sock")
		}
		c.Addrs = []string{path}
		return nil
	}
	hosts, path, _ := strings.Cut(text, "/")
	return cmp.Or(c.parseHosts(hosts), c.parsePath(strings.TrimSuffix(path, "/")))
}

func (c *Config) parseHosts(hosts string) error {
	port := "6379"
	if c.Mode == Sentinel {
		port = "26379"
	}
	for host := range strings.SplitSeq(hosts, ",") {
		u := url.URL{Host: host}
		p := cmp.Or(u.Port(), port)
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 || u.Hostname() == "" || strings.ContainsAny(u.Hostname(), " @:") && !strings.HasPrefix(host, "[") {
			return bad("a host or its port is malformed: write redis://host:6379, redis+sentinel://host:26379/MASTER or redis+cluster://host:6379")
		}
		c.Addrs = append(c.Addrs, net.JoinHostPort(u.Hostname(), p))
	}
	return nil
}

func (c *Config) parsePath(path string) (err error) {
	if c.Mode == Sentinel {
		master, db, _ := strings.Cut(path, "/")
		if c.Master, err = url.PathUnescape(master); err != nil {
			return bad("the name of the primary is malformed")
		}
		path = db
	}
	if path == "" {
		return nil
	}
	if c.DB, err = strconv.Atoi(path); err != nil {
		return bad("the database is no number: write it as in redis://host:6379/0")
	}
	return nil
}

func (c *Config) parseParams(query string) error {
	params, err := url.ParseQuery(query)
	if err != nil {
		return bad("the parameters are malformed")
	}
	for name, values := range params {
		if len(values) > 1 {
			return bad(fmt.Sprintf("parameter %q is given more than once", name))
		}
		if err := c.set(name, values[0]); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) set(name, value string) (err error) {
	switch name {
	case "prefix":
		c.Prefix = value
	case "sentinel_user":
		c.SentinelUsername = value
	case "sentinel_password":
		c.SentinelPassword = value
	case "wait":
		c.Wait, err = strconv.Atoi(value)
	case "waitaof":
		local, replicas, _ := strings.Cut(value, ",")
		var err2 error
		c.WaitLocal, err = strconv.Atoi(local)
		c.WaitReplicas, err2 = strconv.Atoi(replicas)
		err = cmp.Or(err, err2)
	case "wait_timeout":
		if c.WaitTimeout, err = time.ParseDuration(value); err == nil && c.WaitTimeout == 0 {
			c.WaitTimeout = -1 // not the default
		}
	case "durability":
		if c.Volatile = value == "none"; !c.Volatile {
			return bad("the only value of durability is none")
		}
	case paramDB:
		if c.DB, err = strconv.Atoi(value); err != nil || !c.socket() {
			return bad("db is the number of the database where the path is that of a socket; elsewhere write redis://host:6379/0")
		}
	default:
		return bad(fmt.Sprintf("unknown parameter %q (known: %s)", name, strings.Join(Params(), ", ")))
	}
	if err != nil {
		return bad(name + " is malformed: write wait=N, waitaof=L,N and wait_timeout=1s")
	}
	return nil
}
