package drivers

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/internal/cluster"
	"github.com/leaf-id/leaf/segment"
)

// ClusterURL returns the URL of the member that c describes.
func ClusterURL(c cluster.Config) string {
	params := url.Values{}
	for name, value := range map[string]string{"peers": strings.Join(c.Peers, ","), "listen": c.Listen, "ca": c.TLS.CA, "cert": c.TLS.Cert, "key": c.TLS.Key} {
		if value != "" {
			params.Set(name, value)
		}
	}
	return (&url.URL{Scheme: "cluster", Opaque: c.Dir, RawQuery: params.Encode()}).String()
}

// openCluster reads PATH?parameters: the directory of a member, and how it reaches its peers. The
// member starts with the first use of the store or the registry.
func openCluster(u *target) (*Backend, error) {
	u.query("peers", "listen", "ca", "cert", "key")
	c := cluster.Config{Dir: u.address, Listen: u.params.Get("listen"), Logger: u.log,
		TLS: cluster.TLS{CA: u.params.Get("ca"), Cert: u.params.Get("cert"), Key: u.params.Get("key")}}
	if list := u.params.Get("peers"); list != "" {
		c.Peers = strings.Split(list, ",")
	}
	if u.address == "" {
		u.malformed("it names no directory")
	}
	if u.err != nil {
		return nil, u.err
	}
	member, err := cluster.Open(c)
	if err != nil {
		return nil, err
	}
	db, err := etcd.New(member.Client(), &etcd.Options{Clock: member.Clock, Logger: u.log})
	if err != nil {
		return nil, errors.Join(err, member.Close())
	}
	return &Backend{Key: member.Token(), DB: clusterDB{db, member}, TagStore: db.Store(), WorkerRegistry: db.Registry()}, nil
}

// A clusterDB starts its member at the first use.
type clusterDB struct {
	*kv.DB
	member *cluster.Member
}

func (d clusterDB) Start() error { return d.member.Start() }

func (d clusterDB) Init(ctx context.Context, tags []segment.Tag) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	return d.DB.Init(ctx, tags)
}

func (d clusterDB) InitRegistry(ctx context.Context) error {
	if err := d.ready(ctx); err != nil {
		return err
	}
	return d.DB.InitRegistry(ctx)
}

func (d clusterDB) ready(ctx context.Context) error {
	if err := d.member.Start(); err != nil {
		return err
	}
	return d.member.Ready(ctx)
}

func (d clusterDB) Close() error { return errors.Join(d.DB.Close(), d.member.Close()) }
