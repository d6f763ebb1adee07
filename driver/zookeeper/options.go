package zookeeper

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
)

// Defaults of [Options].
const (
	DefaultName           = "leaf" // except in Java Leaf's tree
	DefaultSessionTimeout = 6 * time.Second
	DefaultStandStill     = 10 * time.Second
	DefaultUploadEvery    = 3 * time.Second
)

const defaultPort = "2181"

// Options configures a registry. The zero value of a field means its default.
type Options struct {
	// Name tells several registries of a ZooKeeper apart: the cells are in nodes below
	// /snowflake/NAME. Default [DefaultName]. For [OpenLeaf] it is the leaf.name of the Java
	// servers, and required.
	Name string

	// Chroot is the path below which all znodes are, such as "/apps/id". It must
	// exist. Default: the root.
	Chroot string

	// SessionTimeout decides when the client gives up a silent server: after two thirds of it. The
	// server bounds it, usually to 4 to 40 s. Default 6 s.
	SessionTimeout time.Duration

	// Logger receives messages for operators; nil discards them.
	Logger *slog.Logger

	// The fields below are for [OpenLeaf].

	// IP is the IPv4 address under which this server appears in Java Leaf's tree, see
	// [FirstIPv4]. Required.
	IP string

	// Port is leaf.snowflake.port: with IP it tells this server from all others, and
	// nothing listens on it. Required.
	Port int

	// StandStill is how long a node in Java Leaf's tree that others wrote last must be without a
	// write before this server takes it over; default 10 s. A Java server writes every 3 s.
	StandStill time.Duration

	// UploadEvery is how often this server writes the time to its node in Java Leaf's
	// tree; default 3 s, as Java Leaf does.
	UploadEvery time.Duration

	// Now is the wall clock for uploads; default [time.Now].
	Now func() time.Time
}

// withDefaults returns a copy of o with its defaults.
func (o *Options) withDefaults() Options {
	var d Options
	if o != nil {
		d = *o
	}
	d.Chroot = strings.TrimSuffix(d.Chroot, "/")
	d.SessionTimeout = cmp.Or(d.SessionTimeout, DefaultSessionTimeout)
	d.StandStill = cmp.Or(d.StandStill, DefaultStandStill)
	d.UploadEvery = cmp.Or(d.UploadEvery, DefaultUploadEvery)
	if d.Logger == nil {
		d.Logger = slog.New(slog.DiscardHandler)
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	return d
}

func (o Options) check() error {
	if o.Chroot != "" && (o.Chroot[0] != '/' || slices.ContainsFunc(strings.Split(o.Chroot[1:], "/"), badElement)) {
		return fmt.Errorf("%w: chroot %q is not a path such as /apps/id", leaf.ErrInvalid, o.Chroot)
	}
	if o.SessionTimeout < 0 || o.StandStill < 0 || o.UploadEvery < 0 {
		return fmt.Errorf("%w: a negative duration", leaf.ErrInvalid)
	}
	return nil
}

// address returns ip:port as a node of Java Leaf's tree is called.
func (o Options) address() (string, error) {
	ip, err := netip.ParseAddr(o.IP)
	if err != nil || !ip.Is4() {
		return "", fmt.Errorf("%w: address %q: Java Leaf's tree has room for IPv4 literals such as 192.0.2.2, "+
			"and its servers fail to start on many others", leaf.ErrInvalid, o.IP)
	}
	if o.Port < 1 || o.Port > 65535 {
		return "", fmt.Errorf("%w: port %d: leaf.snowflake.port is a number from 1 to 65535", leaf.ErrInvalid, o.Port)
	}
	return o.IP + ":" + strconv.Itoa(o.Port), nil
}

// badElement reports whether s cannot be one element of a path.
func badElement(s string) bool {
	return s == "" || s == "." || s == ".." || strings.ContainsFunc(s, func(r rune) bool {
		return r == '/' || r < 0x20 || r >= 0x7f && r < 0xa0 || r >= 0xd800 && r < 0xf900 || r >= 0xfff0
	})
}

// withPorts returns the servers with their ports.
func withPorts(servers []string) ([]string, error) {
	if len(servers) == 0 {
		return nil, fmt.Errorf("%w: no zookeeper server named", leaf.ErrInvalid)
	}
	full := slices.Clone(servers)
	for i, s := range full {
		if !strings.Contains(s, ":") {
			full[i] = net.JoinHostPort(s, defaultPort)
		}
		host, port, err := net.SplitHostPort(full[i])
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ ") {
			return nil, fmt.Errorf("%w: zookeeper server %q: write host:port", leaf.ErrInvalid, s)
		}
	}
	return full, nil
}

// FirstIPv4 returns Java Leaf's choice of its own IPv4 address on this machine: "the first of the
// first interface that has one". So a server keeps its worker ID when it moves from Java. A JVM on
// Linux lists interfaces, and the addresses of each, in the reverse of the kernel's order. With
// several interfaces it is better to name the address.
func FirstIPv4() (string, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return "", fmt.Errorf("look for this machine's address: %w", err)
	}
	for _, ifc := range slices.Backward(interfaces) {
		addrs, err := ifc.Addrs()
		if err != nil || ifc.Flags&net.FlagUp == 0 {
			continue // it is gone, or not in use
		}
		if ip := lastIPv4(addrs); ip != "" {
			return ip, nil
		}
	}
	return "", errors.New("this machine has no IPv4 address but loopback: name the one to appear under")
}

func lastIPv4(addrs []net.Addr) string {
	for _, addr := range slices.Backward(addrs) {
		prefix, err := netip.ParsePrefix(addr.String())
		if err == nil && prefix.Addr().Is4() && !prefix.Addr().IsLoopback() {
			return prefix.Addr().String()
		}
	}
	return ""
}
