package drivers

import (
	"cmp"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf/driver/kv"
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

// FromCurator returns the zookeeper: URL of Java Leaf's tree for a Curator connect string,
// h1:2181,h2:2181/chroot, and the port of this server in the tree.
func FromCurator(connect, name string, port int) (string, error) {
	servers, chroot, _ := strings.Cut(strings.TrimSpace(connect), "/")
	u := "zookeeper://" + strings.ReplaceAll(servers, " ", "")
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
	opts := zookeeper.Options{Logger: u.log, IP: u.params.Get("ip")}
	if chroot = strings.TrimSuffix(chroot, "/"); chroot != "" {
		opts.Chroot = "/" + chroot
	}
	if opts.Port, err = u.number("port", 1, 65535); err != nil {
		return nil, err
	}
	layout, name := u.params.Get(paramLayout), u.params.Get("name")
	if !u.params.Has("name") {
		name = zookeeper.DefaultName
	}
	opts.Name = name
	key := func(layout string) string {
		return "//" + sortedList(servers) + opts.Chroot + "?" + url.Values{paramLayout: {layout}, "name": {name}}.Encode()
	}
	switch {
	case u.user != "" || u.hasPassword:
		return nil, malformed("Leaf does not log in to ZooKeeper: leave out the user and the password")
	case u.params.Has(paramLayout) && layout != zkPool && layout != zkLeaf:
		return nil, malformed(fmt.Sprintf("layout %q is neither %s, nor %s for a fleet with servers of Java Leaf", layout, zkPool, zkLeaf))
	case layout == zkLeaf && !u.params.Has("name"):
		return nil, malformed("layout=leaf needs name=…, the leaf.name of the Java servers")
	case layout == zkLeaf:
		return javaTree(key(zkLeaf), servers, opts)
	case u.params.Has("ip") || u.params.Has("port"):
		return nil, malformed("ip and port are for layout=leaf")
	}
	db, err := zookeeper.Open(servers, &opts)
	if err != nil {
		return nil, err
	}
	b := dbBackend(key(zkPool), db)
	b.Hosts = askAlone(servers, func(host string) (*kv.DB, error) { return zookeeper.Open([]string{host}, &opts) })
	return b, nil
}

// javaTree returns the backend in Java Leaf's tree.
func javaTree(key string, servers []string, opts zookeeper.Options) (*Backend, error) {
	open := func(ip string, port int, now func() time.Time) (*zookeeper.Leaf, error) {
		opts := opts
		opts.IP, opts.Port, opts.Now = cmp.Or(opts.IP, ip), cmp.Or(opts.Port, port), now
		return zookeeper.OpenLeaf(servers, &opts)
	}
	observe := func() (*zookeeper.Leaf, error) { return open("127.0.0.1", 1, nil) } // it will not appear under it
	tree, err := observe()                                                          // contacts nothing before the first call, and checks the rest
	if err != nil {
		return nil, err
	}
	return &Backend{
		Key:    key,
		Traits: Traits{Assigned: true, Settle: true, MaxAhead: zkMaxAhead},
		OpenRegistry: func(o RegistryOptions) (worker.Registry, error) {
			switch {
			case o.Observe:
				return observe()
			case opts.Port == 0 && o.Port == 0:
				return nil, invalid("layout=leaf needs port=…, the leaf.snowflake.port that tells this server from others on its machine")
			case opts.IP != "":
				return open("", o.Port, o.Now)
			}
			ip, err := zookeeper.FirstIPv4()
			if err != nil {
				return nil, fmt.Errorf("%w: add ip=… to the URL", err)
			}
			return open(ip, o.Port, o.Now)
		},
	}, tree.Close()
}
