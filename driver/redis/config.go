package redis

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
)

// A Mode is how the servers stand to each other.
type Mode int

// The modes.
const (
	Single   Mode = iota // one server, whose address is given
	Sentinel             // the one that sentinels, whose addresses are given, name as the primary
	Cluster              // a Redis Cluster, some of whose nodes' addresses are given
)

// A Config says where a Redis is and how it is used. [Parse] reads one from a URL;
// the zero value of each field but Addrs is a default.
type Config struct {
	Mode   Mode
	Addrs  []string // host:port; of a single server one, or the path of its socket
	Master string   // with Sentinel: the name of the primary

	Username, Password                 string
	SentinelUsername, SentinelPassword string // if the sentinels want them
	DB                                 int    // 0 with Cluster
	TLS                                *tls.Config

	// Prefix is what the keys begin with, in braces, so that a cluster keeps them on
	// one node: letters, digits and . _ : - . Default: leaf.
	Prefix string

	// Wait is the number of replicas that have to hold a write before it counts.
	Wait int

	// WaitLocal is 1 if the primary, and WaitReplicas the number of replicas that have
	// to have a write on disk before it counts. They need Redis 7.2.
	WaitLocal, WaitReplicas int

	// WaitTimeout bounds how long to wait for that. Default: 1 s.
	WaitTimeout time.Duration

	// Volatile accepts a server without an append-only file (durability=none): its
	// restart forgets what was written since the last snapshot, or everything.
	Volatile bool
}

const (
	defaultPrefix      = "leaf"
	defaultWaitTimeout = time.Second
	maxWaitTimeout     = time.Minute
)

// socket reports whether the address is a path.
func (c Config) socket() bool {
	return c.Mode == Single && len(c.Addrs) == 1 && strings.HasPrefix(c.Addrs[0], "/")
}

// complete returns c with the defaults filled in.
func (c Config) complete() Config {
	if c.Prefix == "" {
		c.Prefix = defaultPrefix
	}
	if c.WaitTimeout == 0 {
		c.WaitTimeout = defaultWaitTimeout
	}
	return c
}

// check reports what is wrong with a completed c.
func (c Config) check() error {
	switch {
	case len(c.Addrs) == 0 || c.Mode == Single && len(c.Addrs) > 1:
		return bad("name one server; several sentinels are redis+sentinel://…, nodes of a cluster redis+cluster://…")
	case c.Mode == Sentinel && c.Master == "":
		return bad("the name of the primary is missing: write redis+sentinel://h1:26379,h2:26379/MASTER")
	case c.Mode == Cluster && c.DB != 0:
		return bad("a cluster has database 0 only")
	case c.DB < 0:
		return bad("the number of the database is negative")
	case c.Password == "" && c.Username != "":
		return bad("there is a user without a password: write user:password@host")
	case len(c.Prefix) > 64 || strings.Trim(c.Prefix, prefixChars) != "":
		return bad("the prefix may hold up to 64 letters, digits and . _ : -")
	case c.Wait < 0 || c.WaitReplicas < 0 || c.WaitLocal < 0 || c.WaitLocal > 1:
		return bad("wait is a number of replicas, waitaof is 0 or 1 for the primary, a comma, and a number of replicas")
	case c.WaitTimeout < time.Millisecond || c.WaitTimeout > maxWaitTimeout:
		return bad("wait_timeout is a duration from 1ms to 1m")
	}
	return nil
}

const prefixChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

// bad never quotes a URL, which may hold a password.
func bad(what string) error { return fmt.Errorf("%w: %s", leaf.ErrInvalid, what) }

// Key returns what identifies the keys that c names, without credentials.
func (c Config) Key() string {
	c = c.complete()
	addrs := make([]string, len(c.Addrs))
	for i, addr := range c.Addrs {
		if addrs[i] = addr; !c.socket() {
			addrs[i] = strings.ToLower(addr)
		}
	}
	slices.Sort(addrs)
	path := ""
	if c.Mode == Sentinel {
		path = "/" + c.Master
	}
	return fmt.Sprintf("//%s%s/%d?prefix=%s", strings.Join(addrs, ","), path, c.DB, c.Prefix)
}

// key returns a key of the given kind. The braces have a cluster look at the prefix
// alone when it looks for the node.
func (c Config) key(kind string) string { return "{" + c.Prefix + "}:" + kind }
