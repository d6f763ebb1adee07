package drivers

import (
	"cmp"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/driver/zookeeper"
	"github.com/leaf-id/leaf/worker"
)

// zkMaxAhead is how far ahead of the clock those may run that Java servers may take over
// from, who know no floor.
const zkMaxAhead = time.Second

// Layouts of the worker IDs in ZooKeeper.
const (
	zkPool = "pool" // our own
	zkLeaf = "leaf" // Java Leaf's
)

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
	u += "?" + url.Values{paramLayout: {zkLeaf}, "name": {name}, "port": {strconv.Itoa(port)}}.Encode()
	if err := CheckRegistry(u); err != nil {
		return "", err
	}
	return u, nil
}

// parseZooKeeper reads //h1:2181,h2:2181/chroot?parameters.
func parseZooKeeper(u *target) (*Backend, error) {
	if err := u.query(paramLayout, "name", "ip", "port"); err != nil {
		return nil, err
	}
	servers, chroot, err := u.cluster("2181")
	if err != nil {
		return nil, err
	}
	layout, name := cmp.Or(u.params.Get(paramLayout), zkPool), u.params.Get("name")
	if !u.params.Has("name") && layout == zkPool {
		name = "leaf"
	}
	opts := zookeeper.Options{Logger: u.log, IP: u.params.Get("ip")}
	if chroot = strings.TrimSuffix(chroot, "/"); chroot != "" {
		opts.Chroot = "/" + chroot
	}
	if opts.Port, err = u.number("port", 1, 65535); err != nil {
		return nil, err
	}
	if err := checkZooKeeper(u, layout, name); err != nil {
		return nil, err
	}
	key := "//" + sortedList(servers) + opts.Chroot + "?" + url.Values{paramLayout: {layout}, "name": {name}}.Encode()
	if layout == zkLeaf {
		return javaTree(key, servers, name, opts)
	}
	db, err := zookeeper.Open(servers, name, &opts)
	if err != nil {
		return nil, err
	}
	return dbBackend(key, db, db.Store(), db.Registry()), nil
}

func checkZooKeeper(u *target, layout, name string) error {
	ip, err := netip.ParseAddr(u.params.Get("ip"))
	switch {
	case u.user != "" || u.hasPassword:
		return malformed("Leaf does not log in to ZooKeeper: leave out the user and the password")
	case layout != zkPool && layout != zkLeaf:
		return malformed(fmt.Sprintf("layout %q is neither %s, nor %s for a fleet with servers of Java Leaf", layout, zkPool, zkLeaf))
	case layout == zkLeaf && !u.params.Has("name"):
		return malformed("layout=leaf needs name=…, the leaf.name of the Java servers")
	case layout == zkPool && (u.params.Has("ip") || u.params.Has("port")):
		return malformed("ip and port are for layout=leaf")
	case name == "" || strings.Contains(name, "/"):
		return malformed("the name is empty or holds a slash")
	case u.params.Has("ip") && (err != nil || !ip.Is4()):
		return malformed("ip is no IPv4 address such as 192.0.2.7")
	}
	return nil
}

// javaTree returns the backend in Java Leaf's tree.
func javaTree(key string, servers []string, name string, opts zookeeper.Options) (*Backend, error) {
	b := &Backend{
		Key:    key,
		Traits: Traits{Assigned: true, Settle: true, MaxAhead: zkMaxAhead},
		registry: func(o RegistryOptions) (worker.Registry, error) {
			opts := opts
			opts.Port = cmp.Or(opts.Port, o.Port)
			if o.Observe { // it will not appear under it
				opts.IP, opts.Port = "127.0.0.1", 1
			}
			if opts.Port == 0 {
				return nil, invalid("layout=leaf needs port=…, the leaf.snowflake.port that tells this server from others on its machine")
			}
			if opts.IP == "" {
				var err error
				if opts.IP, err = zookeeper.FirstIPv4(); err != nil {
					return nil, fmt.Errorf("%w: add ip=… to the URL", err)
				}
			}
			return zookeeper.OpenLeaf(servers, name, &opts)
		},
	}
	// Opening checks the rest, and contacts nothing before the first call.
	tree, err := b.registry(RegistryOptions{Observe: true})
	if err != nil {
		return nil, err
	}
	return b, tree.(*zookeeper.Leaf).Close()
}
