package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// errMoved is the conflict of a write that read the key before another one wrote it.
var errMoved = fmt.Errorf("%w meanwhile", worker.ErrConflict)

// A use is what a prefix is used for: a store or a registry.
type use struct {
	marker  string // the kind of key
	flag    string // of leaf init
	missing error
	newer   error
}

func storeUse() use { return use{"format", "--store", segment.ErrNotCreated, leaf.ErrUnsupported} }

func registryUse() use {
	return use{"worker-format", "--workers", worker.ErrNotCreated, worker.ErrNewer}
}

// failed turns an answer other than ok that every script may give into an error.
func (c *client) failed(u use, a answer, key string) error {
	detail := strings.Join(a.rest, " ")
	switch a.status {
	case answerFormat:
		return c.wrongFormat(u, detail)
	case answerTTL:
		return fmt.Errorf("the key %s is going to expire: somebody gave it a time to live; run PERSIST %q on the server", key, key)
	case answerDamaged:
		return fmt.Errorf("the key %s is damaged, %s: set it with leaf tag set TAG --max-id N --step N --force, max_id above every ID in use", key, detail)
	}
	return fmt.Errorf("the server answered %q", a.status)
}

func (c *client) wrongFormat(u use, held string) error {
	marker := c.config.key(u.marker)
	switch {
	case held == "":
		return fmt.Errorf("%w: there is no key %s: run leaf init %s, or correct the URL or its prefix", u.missing, marker, u.flag)
	case strings.Trim(held, "0123456789") == "":
		return fmt.Errorf("%w: the key %s says format %s, this release knows %s: upgrade Leaf", u.newer, marker, held, format)
	}
	return fmt.Errorf("the key %s holds %.20q, which is no format: choose another prefix", marker, held)
}

// An existsError is [fs.ErrExist], without its words about files.
type existsError struct{ prefix string }

func (e existsError) Error() string {
	return "there are keys under the prefix " + e.prefix + " already"
}
func (e existsError) Is(target error) bool { return target == fs.ErrExist }

// explain adds where an error of the server or of the way to it comes from, and what
// to do about it.
func (c *client) explain(err error) error {
	if errors.Is(err, goredis.ErrClosed) || errors.Is(err, net.ErrClosed) {
		if c.closed.Load() {
			return leaf.ErrClosed
		}
		return c.blame(errGivenUp)
	}
	advice := cmp.Or(serverAdvice(err.Error()), c.networkAdvice(err))
	if advice == "" {
		return err
	}
	return c.blame(fmt.Errorf("%s: %w", advice, err))
}

// errGivenUp stands for an error of the library about a connection that it closed itself.
var errGivenUp = errors.New("the connection was given up during the call, because another server has taken over or this one has left the cluster: " +
	"what became of the call is not known, try again")

// blame says which server an error comes from.
func (c *client) blame(err error) error {
	return fmt.Errorf("redis at %s: %w", strings.Join(c.config.Addrs, ","), err)
}

// serverAdvice looks for the codes of the server anywhere in the text: errors of a
// script or of sentinels hold them in the middle.
func serverAdvice(text string) string {
	for _, a := range [][2]string{
		{"NOAUTH", "the server wants a password: write user:password@host in the URL"},
		{"WRONGPASS", "the server refuses the user: check the user name and the password in the URL"},
		{"without any password configured", "the server has no password: remove it from the URL"},
		{"NOPERM", "the user lacks a permission: ACL SETUSER name ~{PREFIX}:* +@read +@write +@scripting +info +config|get +time +ping +select +wait +waitaof +cluster"},
		{"DENIED", "the server is in protected mode: give it a password (requirepass), or bind it to an address that only your servers reach"},
		{"this user can't run", "the user lacks a permission: ACL SETUSER name +@scripting"},
		{"READONLY", "the server is a replica: name the primary in the URL, or the sentinels (redis+sentinel://)"},
		{"LOADING", "the server is still loading its data: wait until it has"},
		{"MISCONF", "the server cannot write to its disk, and refuses writes: check its log and its disk"},
		{"OOM", "the server's memory is full: raise maxmemory, or remove other data"},
		{"NOREPLICAS", "the server has too few replicas that keep up (min-replicas-to-write): check them"},
		{"MASTERDOWN", "the server is a replica without a primary: name the primary in the URL"},
		{"cluster support disabled", "the server is no node of a cluster: write redis:// instead of redis+cluster://"},
		{"CLUSTERDOWN", "the cluster does not serve the keys: check it with CLUSTER INFO"},
		{"CROSSSLOT", "the cluster is a proxy that splits keys otherwise: name its nodes"},
		{"TRYAGAIN", "the cluster is moving the keys to another node: wait until it has"},
		{"ASK ", "the cluster is moving the keys to another node: wait until it has"},
		{"MOVED ", "the cluster has moved the keys to another node: try again"},
		{"BUSY ", "a script keeps the server from answering: end it (SCRIPT KILL)"},
		{"DB index is out of range", "there is no such database on the server: correct the number in the URL"},
		{"max number of clients", "the server has no connection left: raise maxclients"},
		{"WRONGTYPE", "the key belongs to somebody else: choose another prefix"},
		{"not an integer", "a counter or step is not a number: set it with leaf tag set TAG --max-id N --step N"},
		{"unknown command", "the server lacks a command, or it was renamed: check rename-command in its configuration"},
		{"unknown subcommand", "the server lacks a command: check that it is a Redis of a version that Leaf knows"},
		{"can't parse", "what answers there is no Redis: check the host and the port in the URL"},
	} {
		if strings.Contains(text, a[0]) {
			return a[1]
		}
	}
	return ""
}

func (c *client) networkAdvice(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not trusted: name its authority with ca=FILE in the URL"
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "tls: first record does not look like a TLS handshake"):
		return "the server does not speak TLS there: write redis in place of rediss, or its TLS port"
	case strings.Contains(text, "certificate required"), strings.Contains(text, "bad certificate"), strings.Contains(text, "unknown certificate authority"):
		return "the server wants a certificate of its client, or does not trust it: add cert=FILE&key=FILE to the URL"
	case c.config.Mode == Sentinel && errors.Is(err, goredis.Nil):
		return fmt.Sprintf("the sentinels know no primary named %q: correct the name in the URL", c.config.Master)
	case strings.Contains(text, "all sentinels"):
		return "no sentinel answers: check that they run, and the hosts and ports in the URL"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return "no server answers there: check that it runs, and the host and port in the URL"
	}
	switch {
	case isTimeout(err) && c.config.TLS != nil:
		return "the server does not answer in time: if it does not speak TLS there, write redis in place of rediss"
	case isTimeout(err):
		return "the server does not answer in time"
	case isCut(text) && c.config.TLS == nil:
		return "the server closed the connection: if it speaks TLS there, write rediss in place of redis"
	case isCut(text) && len(c.config.TLS.Certificates) == 0:
		return "the server closed the connection: if it wants a certificate of its client, add cert=FILE&key=FILE to the URL"
	case isCut(text):
		return "the server closed the connection"
	}
	return ""
}

func isTimeout(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return ok && n.Timeout()
}

func isCut(text string) bool {
	return strings.Contains(text, "EOF") || strings.Contains(text, "reset by peer") || strings.Contains(text, "broken pipe")
}
