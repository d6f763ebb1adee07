package drivers

import (
	"context"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/zookeeper"
)

// What a ZooKeeper registry is called, its port, and how far ahead of the clock those may run
// that Java servers may take over from, who know no floor.
const (
	zkName     = "leaf"
	zkPort     = "2181"
	zkMaxAhead = time.Second
)

// Layouts of the worker IDs in ZooKeeper.
const (
	zkPool = "pool" // our own
	zkLeaf = "leaf" // Java Leaf's
)

// A zkURL is a zookeeper: URL taken apart.
type zkURL struct {
	servers []string
	chroot  string
	layout  string
	name    string
	ip      string // empty: to be found out
	port    int    // 0: the server's
}

// FromCurator returns the zookeeper: URL of Java Leaf's tree on the servers of a
// Curator connect string, h1:2181,h2:2181/chroot, for the server that is known there by
// port.
func FromCurator(connect, name string, port int) (string, error) {
	servers, chroot, _ := strings.Cut(strings.TrimSpace(connect), "/")
	hosts := strings.Split(servers, ",")
	for i, h := range hosts {
		hosts[i] = strings.TrimSpace(h)
	}
	u := "zookeeper://" + strings.Join(hosts, ",")
	if chroot != "" {
		u += "/" + (&url.URL{Path: chroot}).EscapedPath()
	}
	u += "?" + url.Values{"layout": {zkLeaf}, "name": {name}, "port": {strconv.Itoa(port)}}.Encode()
	if err := CheckRegistry(u); err != nil {
		return "", err
	}
	return u, nil
}

// parseZooKeeper reads //h1:2181,h2:2181/chroot?parameters.
func parseZooKeeper(rest string) (registrySource, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return registrySource{}, badZooKeeper("two slashes are missing after the scheme")
	}
	rest, query, _ := strings.Cut(rest, "?")
	params, err := parseParams(query)
	if err != nil {
		return registrySource{}, err
	}
	z, err := newZKURL(rest, params)
	if err != nil {
		return registrySource{}, err
	}
	terms, err := cutTerms(params, z.layout == zkLeaf)
	if err == nil {
		err = onlyParams(params, "layout", "name", "ip", "port")
	}
	if err != nil {
		return registrySource{}, err
	}
	src := registrySource{
		key:   z.key(),
		terms: terms,
		open:  func(o RegistryOptions) (Registry, error) { return z.open(o) },
	}
	if z.layout == zkLeaf {
		src.assigned, src.terms.Settle, src.terms.MaxAhead = true, true, zkMaxAhead
		return src, nil
	}
	src.init = func(ctx context.Context) error {
		return withDB(z.openPool, func(db *kv.DB) error { return db.InitRegistry(ctx) })
	}
	src.exists = func(ctx context.Context) (exists bool, err error) {
		err = withDB(z.openPool, func(db *kv.DB) error {
			exists, err = db.Registry().Exists(ctx)
			return err
		})
		return exists, err
	}
	return src, nil
}

func newZKURL(address string, params url.Values) (zkURL, error) {
	if strings.Contains(address, "@") {
		return zkURL{}, badZooKeeper("Leaf does not log in to ZooKeeper: leave out the user and the password")
	}
	hosts, chroot, _ := strings.Cut(address, "/")
	z := zkURL{layout: zkPool, name: zkName, ip: params.Get("ip")}
	for host := range strings.SplitSeq(hosts, ",") {
		server, ok := hostPort(host, zkPort)
		if !ok {
			return zkURL{}, badZooKeeper("a host or its port is malformed")
		}
		z.servers = append(z.servers, server)
	}
	chroot, err := url.PathUnescape(strings.TrimSuffix(chroot, "/"))
	if err != nil {
		return zkURL{}, badZooKeeper("the chroot is malformed")
	}
	if chroot != "" {
		z.chroot = "/" + chroot
	}
	if params.Has("layout") {
		z.layout = params.Get("layout")
	}
	if params.Has("name") {
		z.name = params.Get("name")
	}
	if port := params.Get("port"); params.Has("port") {
		if z.port, err = strconv.Atoi(port); err != nil || z.port < 1 || z.port > 65535 {
			return zkURL{}, badZooKeeper("port is no number from 1 to 65535")
		}
	}
	return z, z.check(params)
}

func (z zkURL) check(params url.Values) error {
	ip, err := netip.ParseAddr(z.ip)
	switch {
	case z.layout != zkPool && z.layout != zkLeaf:
		return badZooKeeper(fmt.Sprintf("layout %q is neither %s, nor %s for a fleet with servers of Java Leaf", z.layout, zkPool, zkLeaf))
	case z.layout == zkLeaf && !params.Has("name"):
		return badZooKeeper("layout=leaf needs name=…, the leaf.name of the Java servers")
	case z.layout == zkPool && (params.Has("ip") || params.Has("port")):
		return badZooKeeper("ip and port are for layout=leaf")
	case z.name == "" || strings.Contains(z.name, "/"):
		return badZooKeeper("the name is empty or holds a slash")
	case params.Has("ip") && (err != nil || !ip.Is4()):
		return badZooKeeper("ip is no IPv4 address such as 192.0.2.7")
	}
	// Opening looks at the rest, and contacts nothing before the first call.
	registry, err := z.open(RegistryOptions{Observe: true})
	if err != nil {
		return err
	}
	return registry.Close()
}

func (z zkURL) key() string {
	servers := slices.Sorted(slices.Values(z.servers))
	return "//" + strings.Join(servers, ",") + z.chroot + "?" + url.Values{"layout": {z.layout}, "name": {z.name}}.Encode()
}

func (z zkURL) open(o RegistryOptions) (Registry, error) {
	opts := &zookeeper.Options{Chroot: z.chroot, Logger: o.Logger, IP: z.ip, Port: z.port}
	if z.layout == zkPool {
		db, err := zookeeper.Open(z.servers, z.name, opts)
		if err != nil {
			return nil, err
		}
		return kvRegistry{db.Registry(), db}, nil
	}
	if opts.Port == 0 {
		opts.Port = o.Port
	}
	if o.Observe { // nobody will appear under it
		opts.IP, opts.Port = "127.0.0.1", 1
	}
	if opts.Port == 0 {
		return nil, badZooKeeper("layout=leaf needs port=…, the leaf.snowflake.port that tells this server from others on its machine")
	}
	if opts.IP == "" {
		var err error
		if opts.IP, err = zookeeper.FirstIPv4(); err != nil {
			return nil, fmt.Errorf("%w: add ip=… to the URL", err)
		}
	}
	return zookeeper.OpenLeaf(z.servers, z.name, opts)
}

func (z zkURL) openPool() (*kv.DB, error) {
	return zookeeper.Open(z.servers, z.name, &zookeeper.Options{Chroot: z.chroot})
}

func badZooKeeper(what string) error {
	return fmt.Errorf("%w: %s: write zookeeper://h1:2181,h2:2181, or zookeeper://h1:2181,h2:2181/chroot?layout=leaf&name=N&port=P", leaf.ErrInvalid, what)
}
