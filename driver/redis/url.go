package redis

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schemes returns the schemes of the URLs that [Parse] reads, without those with
// rediss in place of redis, which are the same over TLS.
func Schemes() []string { return []string{"redis", "redis+sentinel", "redis+cluster"} }

// Params returns the parameters of such a URL.
func Params() []string {
	return []string{"prefix", "wait", "waitaof", "wait_timeout", "durability", "ca", "cert", "key", "sentinel_user", "sentinel_password"}
}

// Parse reads one of
//
//	redis://user:password@host:6379/0
//	redis+sentinel://user:password@host1:26379,host2:26379/MASTER/0
//	redis+cluster://user:password@host1:6379,host2:6379
//
// or the same with rediss in place of redis, over TLS, each with the parameters
//
//	prefix=leaf               what the keys begin with
//	wait=N                    replicas that have to hold a write before it counts
//	waitaof=L,N               L=1: the primary, and N replicas, have to have it on disk
//	wait_timeout=1s           how long to wait for that
//	durability=none           accept a server without an append-only file
//	ca=FILE cert=FILE key=FILE   PEM files, over TLS: who signs the server's certificate; the client's
//	sentinel_user=U sentinel_password=P   what the sentinels want
//
// Reserved characters in a user name or password are percent-encoded. The error wraps
// [leaf.ErrInvalid], unless a file cannot be read.
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
	hosts, path, _ := strings.Cut(rest, "/")
	if err := c.parseHosts(hosts); err != nil {
		return Config{}, err
	}
	if err := c.parsePath(path); err != nil {
		return Config{}, err
	}
	if err := c.parseParams(query, secure); err != nil {
		return Config{}, err
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
	if mode < 0 {
		return c, false, bad("the scheme is none of " + strings.Join(Schemes(), ", ") + ", nor one of these with rediss")
	}
	c.Mode = Mode(mode)
	return c, secure, nil
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
			return bad("a host or its port is malformed")
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
		return bad("the database is no number")
	}
	return nil
}

func (c *Config) parseParams(query string, secure bool) error {
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
	c.Prefix = params.Get("prefix")
	c.SentinelUsername, c.SentinelPassword = params.Get("sentinel_user"), params.Get("sentinel_password")
	if d := params.Get("durability"); d == "none" {
		c.Volatile = true
	} else if d != "" {
		return bad("the only value of durability is none")
	}
	if err := c.parseWait(params); err != nil {
		return err
	}
	return c.parseTLS(params, secure)
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

func (c *Config) parseTLS(params url.Values, secure bool) error {
	ca, cert, key := params.Get("ca"), params.Get("cert"), params.Get("key")
	switch {
	case !secure && (ca != "" || cert != "" || key != ""):
		return bad("ca, cert and key are for TLS: write rediss in place of redis")
	case !secure:
		return nil
	case (cert == "") != (key == ""):
		return bad("cert and key belong together")
	}
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return fmt.Errorf("ca: %w", err)
		}
		c.TLS.RootCAs = x509.NewCertPool()
		if !c.TLS.RootCAs.AppendCertsFromPEM(pem) {
			return bad("there is no PEM certificate in the file that ca names")
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("cert and key: %w", err)
		}
		c.TLS.Certificates = []tls.Certificate{pair}
	}
	return nil
}
