package drivers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/cluster"
)

// ClusterURL returns the URL of the member that c describes.
func ClusterURL(c cluster.Config) string {
	params := url.Values{"peers": {strings.Join(c.Peers, ",")}, "listen": {c.Listen}, "ca": {c.TLS.CA}, "cert": {c.TLS.Cert}, "key": {c.TLS.Key}}
	maps.DeleteFunc(params, func(_ string, values []string) bool { return values[0] == "" })
	if c.NotAlone {
		params.Set("alone", "refuse")
	}
	if c.Quota > 0 {
		params.Set("quota", strconv.FormatInt(c.Quota, 10))
	}
	return (&url.URL{Scheme: "cluster", Opaque: c.Dir, RawQuery: params.Encode()}).String()
}

// openCluster reads PATH?parameters: the directory of a member, and how it reaches its peers. The
// member starts with the first use of the store or the registry.
func openCluster(u *target) (*Backend, error) {
	c := cluster.Config{Dir: u.address, Listen: u.text("listen"), Logger: u.log, NotAlone: u.oneOf("alone", "refuse") != "",
		TLS:   cluster.TLS{CA: u.text("ca"), Cert: u.text("cert"), Key: u.text("key")},
		Quota: int64(u.number("quota", 1, math.MaxInt))}
	if list := u.text("peers"); list != "" {
		c.Peers = strings.Split(list, ",")
	}
	if u.address == "" {
		u.malformed("it names no directory")
	}
	member, err := cluster.Open(c)
	if err != nil {
		return nil, err
	}
	db, err := etcd.New(member.Client(), &etcd.Options{Prefix: cluster.Prefix, Clock: member.Clock, Logger: u.log})
	if err != nil {
		return nil, errors.Join(err, member.Close())
	}
	u.key = member.Token()
	return newBackend(clusterDB{db, member}, nil)
}

// A clusterDB is the store and the registry in a cluster, and this process's member of that.
type clusterDB struct {
	*kv.DB
	*cluster.Member
}

func (d clusterDB) Close() error { return errors.Join(d.DB.Close(), d.Member.Close()) }

// RestoreCluster fills the new cluster of b with the store of a snapshot. The cluster may start again
// after the wait. See [kv.DB.Restore].
func RestoreCluster(ctx context.Context, b *Backend, snapshot []cluster.Pair, jump int64) (wait time.Duration, err error) {
	db, ok := b.DB.(clusterDB)
	if !ok {
		return 0, fmt.Errorf("%w: URL %s is no cluster", leaf.ErrInvalid, b.Name)
	}
	if err := db.Start(); err != nil {
		return 0, err
	}
	if err := db.Ready(ctx); err != nil {
		return 0, err
	}
	var cells []kv.Cell
	for _, pair := range snapshot {
		kind, name, _ := strings.Cut(pair.Key, "/")
		cells = append(cells, kv.Cell{Key: kv.Key{Kind: kv.Kind(kind), Name: name}, Value: pair.Value, Version: "backup"})
	}
	return db.Restore(ctx, cells, jump, time.Now())
}
