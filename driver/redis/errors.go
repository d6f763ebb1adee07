package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
)

var (
	errMalformed = errors.New("the server's answer is malformed")

	errUnsettled = errors.New("another server has taken over, or this one was started again: try again")

	// errGivenUp replaces an error of the library about a connection that it closed itself.
	errGivenUp = errors.New("the connection was given up during the call, because another server has taken over or this one has left the cluster: " +
		"what became of the call is not known, try again")
)

// explain adds where an error of the server or of the way to it comes from, and what
// to do about it.
func (c *client) explain(err error) error {
	advice := ""
	if e, ok := errors.AsType[goredis.Error](err); ok && !errors.Is(err, goredis.Nil) {
		code, detail := splitCode(e.Error())
		if scripts := c.scriptError(code, detail); scripts != nil {
			return scripts
		}
		advice = serverAdvice(code)
	} else if errors.Is(err, goredis.ErrClosed) || errors.Is(err, net.ErrClosed) {
		if c.closed.Load() {
			return leaf.ErrClosed
		}
		err = errGivenUp
	} else if advice = c.networkAdvice(err); advice == "" {
		return err
	}
	if advice != "" {
		err = fmt.Errorf("%s: %w", advice, err)
	}
	return c.locate(err)
}

// locate says which server an error comes from.
func (c *client) locate(err error) error {
	return fmt.Errorf("redis at %s: %w", strings.Join(c.config.Addrs, ","), err)
}

// splitCode returns the first word of a server's error and what follows. Redis 6 puts the
// error of a command in a script behind words of its own.
func splitCode(text string) (code, detail string) {
	if at := strings.LastIndex(text, "@user_script:"); at >= 0 && strings.HasPrefix(text, "ERR Error running script") {
		_, text, _ = strings.Cut(strings.TrimPrefix(text[at:], "@user_script:"), ": ")
	}
	text = strings.TrimPrefix(text, "-")
	code, detail, _ = strings.Cut(text, " ")
	return code, detail
}

// scriptError returns the error for a code of our scripts.
func (c *client) scriptError(code, detail string) error {
	switch code {
	case codeServer:
		return c.locate(errUnsettled)
	case codeTTL:
		return fmt.Errorf("the key %s is going to expire: it was given a time to live; run PERSIST %q on the server", detail, detail)
	case codeMoved:
		return fmt.Errorf("%w: others have written the %s since, or it is gone", kv.ErrConflict, detail)
	}
	return nil
}

// serverAdvice says what to do about a code of Redis.
func serverAdvice(code string) string {
	return map[string]string{
		"NOAUTH":      "the server wants a password: write user:password@host in the URL",
		"WRONGPASS":   "the server refuses the user: check the user name and the password in the URL",
		"NOPERM":      "the user lacks a permission: ACL SETUSER name ~{PREFIX}:* +@read +@write +@scripting +info +config|get +time +ping +select +wait +waitaof +cluster",
		"DENIED":      "the server is in protected mode: give it a password (requirepass), or bind it to an address that only your servers reach",
		"READONLY":    "the server is a replica: name the primary in the URL, or the sentinels (redis+sentinel://)",
		"MASTERDOWN":  "the server is a replica without a primary: name the primary in the URL",
		"LOADING":     "the server is still loading its data: wait until it has",
		"MISCONF":     "the server cannot write to its disk, and refuses writes: check its log and its disk",
		"OOM":         "the server's memory is full: raise maxmemory, or remove other data",
		"NOREPLICAS":  "the server has too few replicas that keep up (min-replicas-to-write): check them",
		"CLUSTERDOWN": "the cluster does not serve the keys: check it with CLUSTER INFO",
		"CROSSSLOT":   "the cluster is a proxy that splits keys otherwise: name its nodes",
		"TRYAGAIN":    "the cluster is moving the keys to another node: wait until it has",
		"ASK":         "the cluster is moving the keys to another node: wait until it has",
		"MOVED":       "the cluster has moved the keys to another node: try again",
		"BUSY":        "a script keeps the server from answering: end it (SCRIPT KILL)",
		"WRONGTYPE":   "the key belongs to another program: choose another prefix",
	}[code]
}

func (c *client) networkAdvice(err error) string {
	op, isOp := errors.AsType[*net.OpError](err)
	network, isNetwork := errors.AsType[net.Error](err)
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	_, plain := errors.AsType[tls.RecordHeaderError](err)
	cut := errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
	switch {
	case untrusted:
		return "the server's certificate is not trusted: name its authority with ca=FILE in the URL"
	case plain:
		return "the server does not speak TLS there: write redis in place of rediss, or its TLS port"
	case errors.Is(err, goredis.Nil) && c.config.Mode == Sentinel:
		return fmt.Sprintf("the sentinels know no primary named %q: correct the name in the URL", c.config.Master)
	case isOp && op.Op == "dial":
		return "no server answers there: check that it runs, and the host and port in the URL"
	case isNetwork && network.Timeout() && c.config.TLS != nil:
		return "the server does not answer in time: if it does not speak TLS there, write redis in place of rediss"
	case isNetwork && network.Timeout():
		return "the server does not answer in time"
	case cut && c.config.TLS == nil:
		return "the server closed the connection: if it speaks TLS there, write rediss in place of redis"
	case cut || isOp && op.Op == "remote error": // an alert of TLS
		return "the server closed the connection: if it wants a certificate of its client, add cert=FILE&key=FILE to the URL"
	}
	return ""
}
