package redis

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schemes returns the schemes of the URLs that [Parse] reads, without those with
// rediss in place of redis, which are the same over TLS.
func Schemes() []string { return []string{"redis", "redis+sentinel", "redis+cluster", schemeSocket} }

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
	c, secure, err := parseScheme(strings.ToLower(scheme))
	if err != nil {
		return Config{}, err
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if c.Username, c.Password, err = parseUser(rest[:at]); err != nil {
			return Config{}, err
		}
		rest = rest[at+1:]
	}
	rest, query, _ := strings.Cut(rest, "?")
	if strings.EqualFold(scheme, schemeSocket) {
		err = c.parseSocket(rest)
	} else {
		err = c.parseAddress(rest)
	}
	if err != nil {
		return Config{}, err
	}
	if err := c.parseParams(query); err != nil {
		return Config{}, err
	}
	if secure {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c = c.complete()
	return c, c.check()
}

func parseScheme(scheme string) (c Config, secure bool, err error) {
	plain := scheme
	if rest, ok := strings.CutPrefix(scheme, "rediss"); ok {
		plain, secure = "redis"+rest, true
	}
	mode := slices.Index(Schemes(), plain)
	switch {
	case mode < 0 || plain == schemeSocket && secure:
		return c, false, bad("the scheme is none of " + strings.Join(Schemes(), ", ") + ", nor, but for the last, one of these with rediss")
	case plain != schemeSocket:
		c.Mode = Mode(mode)
	}
	return c, secure, nil
}

func (c *Config) parseSocket(path string) error {
	path, err := url.PathUnescape(path)
	if err != nil || !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return bad("the path of the socket is missing or malformed: write redis+unix:///run/redis/redis.sock")
	}
	c.Addrs = []string{path}
	return nil
}

func (c *Config) parseAddress(text string) error {
	hosts, path, _ := strings.Cut(text, "/")
	if err := c.parseHosts(hosts); err != nil {
		return err
	}
	return c.parsePath(path)
}

func parseUser(text string) (user, password string, err error) {
	user, password, _ = strings.Cut(text, ":")
	if user, err = url.PathUnescape(user); err == nil {
		password, err = url.PathUnescape(password)
	}
	if err != nil {
		return "", "", bad("the user name or the password is not percent-encoded: write %25 for a percent sign")
	}
	return user, password, nil
}

func (c *Config) parseHosts(hosts string) error {
	port := "6379"
	if c.Mode == Sentinel {
		port = "26379"
	}
	for host := range strings.SplitSeq(hosts, ",") {
		u := url.URL{Host: host}
		p := u.Port()
		if p == "" {
			p = port
		}
		n, err := strconv.Atoi(p)
		if err != nil || n < 1 || n > 65535 || u.Hostname() == "" || strings.ContainsAny(u.Hostname(), " @:") && !strings.HasPrefix(host, "[") {
			return bad("a host or its port is malformed: write redis://host:6379, redis+sentinel://host:26379/MASTER or redis+cluster://host:6379")
		}
		c.Addrs = append(c.Addrs, net.JoinHostPort(u.Hostname(), p))
	}
	return nil
}

func (c *Config) parsePath(path string) (err error) {
	path = strings.TrimSuffix(path, "/")
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
		switch {
		case !slices.Contains(Params(), name):
			return bad(fmt.Sprintf("unknown parameter %q (known: %s)", name, strings.Join(Params(), ", ")))
		case len(values) > 1:
			return bad(fmt.Sprintf("parameter %q is given more than once", name))
		}
	}
	if params.Has(paramDB) {
		if c.DB, err = strconv.Atoi(params.Get(paramDB)); err != nil || !c.socket() {
			return bad("db is the number of the database where the path is that of a socket; elsewhere write redis://host:6379/0")
		}
	}
	c.Prefix = params.Get("prefix")
	c.SentinelUsername, c.SentinelPassword = params.Get("sentinel_user"), params.Get("sentinel_password")
	if d := params.Get("durability"); d == "none" {
		c.Volatile = true
	} else if d != "" {
		return bad("the only value of durability is none")
	}
	return c.parseWait(params)
}

func (c *Config) parseWait(params url.Values) (err error) {
	if text := params.Get("wait"); text != "" {
		if c.Wait, err = strconv.Atoi(text); err != nil {
			c.Wait = -1
		}
	}
	if text := params.Get("waitaof"); text != "" {
		local, replicas, _ := strings.Cut(text, ",")
		c.WaitLocal, err = strconv.Atoi(local)
		if err == nil {
			c.WaitReplicas, err = strconv.Atoi(replicas)
		}
		if err != nil {
			c.WaitReplicas = -1
		}
	}
	if text := params.Get("wait_timeout"); text != "" {
		if c.WaitTimeout, err = time.ParseDuration(text); err != nil || c.WaitTimeout == 0 {
			c.WaitTimeout = -1
		}
	}
	return nil // check says what is wrong
}
