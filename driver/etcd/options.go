package etcd

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leaf-id/leaf"
)

// DefaultPrefix is what the keys begin with where [Options] say nothing else.
const DefaultPrefix = "/leaf"

const defaultPort = "2379"

// Options are the optional settings of [Open]; nil means all defaults.
type Options struct {
	// Prefix is what all keys begin with, followed by a slash. Default [DefaultPrefix].
	Prefix string

	// Username and Password are those of a user of etcd; empty: none. Neither is ever
	// logged.
	Username, Password string

	// TLS is the encryption of all connections; nil: none.
	TLS *tls.Config

	// HTTP holds host:port of each member's HTTP server, where etcd was told to keep
	// that apart (--listen-client-http-urls). Default: the endpoints. Only
	// the clock of the registry uses it.
	HTTP []string

	// Logger gets a line when a member is given up for a new reason. Default: nothing is
	// logged.
	Logger *slog.Logger
}

// withDefaults returns a copy of o with its defaults.
func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	if d.Prefix = strings.TrimRight(d.Prefix, "/"); d.Prefix == "" {
		d.Prefix = DefaultPrefix
	}
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	return d
}

func (o Options) check() error {
	switch {
	case !utf8.ValidString(o.Prefix) || strings.ContainsFunc(o.Prefix, unicode.IsControl):
		return fmt.Errorf("%w: prefix %q holds what is no text", leaf.ErrInvalid, o.Prefix)
	case (o.Username == "") != (o.Password == ""):
		return fmt.Errorf("%w: a user of etcd needs a name and a password", leaf.ErrInvalid)
	}
	return nil
}

// checkAddresses returns the addresses with their ports.
func checkAddresses(addresses []string) ([]string, error) {
	if len(addresses) == 0 {
		return nil, fmt.Errorf("%w: no etcd endpoint named", leaf.ErrInvalid)
	}
	full := make([]string, len(addresses))
	for i, a := range addresses {
		if host, port, err := net.SplitHostPort(a); err == nil && host != "" && !badPort(port) && !strings.ContainsAny(host, " /@") {
			full[i] = a
		} else if a != "" && !strings.ContainsAny(a, ":/@ ") {
			full[i] = net.JoinHostPort(a, defaultPort)
		} else {
			return nil, fmt.Errorf("%w: etcd endpoint %q: write host:port", leaf.ErrInvalid, a)
		}
	}
	return full, nil
}

func badPort(s string) bool {
	n, err := strconv.Atoi(s)
	return err != nil || n < 1 || n > 65535
}
