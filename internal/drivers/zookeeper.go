package drivers

import (
	"cmp"
	"fmt"
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

// openZooKeeper reads //h1:2181,h2:2181/chroot?parameters. In Java Leaf's tree name is leaf.name,
// port is leaf.snowflake.port and ip is the IPv4 address of this server there, by default this
// machine's.
func openZooKeeper(u *target) (*Backend, error) {
	servers, chroot := u.cluster("2181")
	opts := zookeeper.Options{Logger: u.log, IP: u.text("ip"), Port: u.number("port", 1, 65535), Name: zookeeper.DefaultName}
	if chroot = strings.TrimSuffix(chroot, "/"); chroot != "" {
		opts.Chroot = "/" + chroot
	}
	name, named := u.param("name")
	if named {
		opts.Name = name
	}
	layout, ok := u.param(paramLayout)
	switch {
	case u.user != "" || u.hasPassword:
		u.malformed("Leaf does not log in to ZooKeeper: leave out the user and the password")
	case ok && layout != zkPool && layout != zkLeaf:
		u.malformed("layout %q is neither %s, nor %s for a fleet with servers of Java Leaf", layout, zkPool, zkLeaf)
	case layout == zkLeaf && !named:
		u.malformed("layout=leaf needs name=…, the leaf.name of the Java servers")
	case layout != zkLeaf && (u.params.Has("ip") || u.params.Has("port")):
		u.malformed("ip and port are for layout=leaf")
	}
	u.key = "//" + sortedList(servers) + opts.Chroot + "?" + url.Values{paramLayout: {cmp.Or(layout, zkPool)}, "name": {opts.Name}}.Encode()
	if layout == zkLeaf {
		tree := javaTree{servers: servers, opts: opts}
		leaf, err := tree.open("127.0.0.1", 1, nil) // contacts nothing, and checks the options
		if err == nil {
			err = leaf.Close()
		}
		u.traits = Traits{Assigned: true, Settle: true, MaxAhead: zkMaxAhead}
		return &Backend{DB: tree}, err
	}
	u.apart = servers
	return newBackend(zookeeper.Open(servers, &opts))
}

// A javaTree is Java Leaf's tree.
type javaTree struct {
	servers []string
	opts    zookeeper.Options
}

func (t javaTree) Close() error { return nil }

func (t javaTree) open(ip string, port int, now func() time.Time) (*zookeeper.Leaf, error) {
	opts := t.opts
	opts.IP, opts.Port, opts.Now = cmp.Or(opts.IP, ip), cmp.Or(opts.Port, port), now
	return zookeeper.OpenLeaf(t.servers, &opts)
}

func (t javaTree) OpenRegistry(o *RegistryOptions) (worker.Registry, error) {
	switch {
	case o.Observe:
		return t.open("127.0.0.1", 1, nil) // it will not appear under it
	case t.opts.Port == 0 && o.Port == 0:
		return nil, invalid("layout=leaf needs port=…, the leaf.snowflake.port that tells this server from others on its machine")
	case t.opts.IP != "":
		return t.open("", o.Port, o.Now)
	}
	ip, err := zookeeper.FirstIPv4()
	if err != nil {
		return nil, fmt.Errorf("%w: add ip=… to the URL", err)
	}
	return t.open(ip, o.Port, o.Now)
}
