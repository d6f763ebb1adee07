package redis

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf"
)

// A Mode is the kind of setup.
type Mode int

// The modes.
const (
	Single   Mode = iota // one server, whose address is given
	Sentinel             // the one that sentinels, whose addresses are given, name as the primary
	Cluster              // a Redis Cluster, some of whose nodes' addresses are given
)

// A Config says where a Redis is and how it is used. The zero value of each field but Addrs
// is a default.
type Config struct {
	// Client, if not nil, is an existing client to use in place of all that says where
	// the Redis is: a [goredis.Client], also one of a Sentinel, or a [goredis.ClusterClient].
	// Its MaxRetries must be -1, because a library that sends a write again may take a
	// range back from its next owner; others are refused, as is a [goredis.Ring], whose
	// servers know nothing of each other. It must not send anything again by other means
	// either, such as a hook or a proxy, which cannot be checked. It stays open. When its
	// connections fall silent they are not replaced: each costs a call.
	Client goredis.UniversalClient

	Mode   Mode
	Addrs  []string // host:port; of a single server one, or the path of its socket
	Master string   // with Sentinel: the name of the primary

	Username, Password                 string
	SentinelUsername, SentinelPassword string // if the sentinels want them
	DB                                 int    // 0 with Cluster
	TLS                                *tls.Config

	// Prefix is the beginning of the keys, in braces, so that a cluster keeps them on one node:
	// letters, digits and . _ : - . Default: [DefaultPrefix].
	Prefix string

	// Wait is the number of replicas that must hold a write before it counts.
	Wait int

	// WaitLocal (1) makes the primary, and WaitReplicas this number of replicas, sync a write to
	// disk before it counts. They need Redis 7.2.
	WaitLocal, WaitReplicas int

	// WaitTimeout bounds how long to wait for that. Default: 1 s.
	WaitTimeout time.Duration

	// Volatile accepts a server without an append-only file (durability=none). Its restart
	// forgets the writes since the last snapshot, or all of them.
	Volatile bool
}

const (
	// DefaultPrefix is what keys begin with where [Config] says nothing else.
	DefaultPrefix = "leaf"

	defaultWaitTimeout = time.Second
	maxWaitTimeout     = time.Minute
)

// complete returns c with defaults, or an error about it.
func (c Config) complete() (Config, error) {
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.WaitTimeout = cmp.Or(c.WaitTimeout, defaultWaitTimeout)
	if err := c.adopt(); err != nil {
		return Config{}, err
	}
	switch {
	case len(c.Addrs) == 0 || c.Mode == Single && len(c.Addrs) > 1:
		return Config{}, bad("name one server; several sentinels are redis+sentinel://…, nodes of a cluster redis+cluster://…")
	case c.Mode == Sentinel && c.Master == "":
		return Config{}, bad("the name of the primary is missing: write redis+sentinel://h1:26379,h2:26379/MASTER")
	case c.Mode == Cluster && c.DB != 0:
		return Config{}, bad("a cluster has database 0 only")
	case c.DB < 0:
		return Config{}, bad("the number of the database is negative")
	case c.Password == "" && c.Username != "":
		return Config{}, bad("there is a user without a password: write user:password@host")
	case len(c.Prefix) > 64 || strings.Trim(c.Prefix, prefixChars) != "":
		return Config{}, bad("the prefix may hold up to 64 letters, digits and . _ : -")
	case c.Wait < 0 || c.WaitReplicas < 0 || c.WaitLocal < 0 || c.WaitLocal > 1:
		return Config{}, bad("wait is a number of replicas, waitaof is 0 or 1 for the primary, a comma, and a number of replicas")
	case c.WaitTimeout < time.Millisecond || c.WaitTimeout > maxWaitTimeout:
		return Config{}, bad("wait_timeout is a duration from 1ms to 1m")
	}
	return c, nil
}

// failoverAddr is the address that the library gives a client of a Sentinel.
const failoverAddr = "FailoverClient"

// adopt takes over from an existing client where its servers are, if it can be used.
func (c *Config) adopt() error {
	retries := 0
	switch client := c.Client.(type) {
	case nil:
		return nil
	case *goredis.Client:
		o := client.Options()
		c.Mode, c.Addrs, c.Master, c.DB, c.TLS, retries = Single, []string{o.Addr}, "", o.DB, o.TLSConfig, o.MaxRetries
		if o.Addr == failoverAddr {
			c.Mode, c.Master = Sentinel, failoverAddr
		}
	case *goredis.ClusterClient:
		o := client.Options()
		c.Mode, c.Addrs, c.DB, c.TLS, retries = Cluster, o.Addrs, 0, o.TLSConfig, o.MaxRetries
	default:
		return bad(fmt.Sprintf("a client that is a %T cannot be used: take a Client or a ClusterClient", client))
	}
	if retries > 0 {
		return bad("the client sends commands again, which can take IDs away from their next owner: set its MaxRetries to -1")
	}
	return nil
}

const prefixChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:-"

// bad never quotes a URL, which may hold a password.
func bad(what string) error { return fmt.Errorf("%w: %s", leaf.ErrInvalid, what) }

// key returns a key of the given kind. The braces have a cluster look at the prefix
// alone when it looks for the node.
func (c Config) key(kind string) string { return "{" + c.Prefix + "}:" + kind }
