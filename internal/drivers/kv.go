package drivers

import (
	"context"
	"io"
	"strings"

	natsio "github.com/nats-io/nats.go"

	"github.com/leaf-id/leaf/driver/etcd"
	"github.com/leaf-id/leaf/driver/kv"
	"github.com/leaf-id/leaf/driver/nats"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// dbBackend returns the backend of a database that opens and creates both parts.
func dbBackend[S interface {
	segment.Store
	Exists(context.Context) (bool, error)
}, R interface {
	worker.Registry
	Exists(context.Context) (bool, error)
}](key string, db interface {
	Store() S
	Registry() R
	Init(context.Context, []segment.Tag) error
	InitRegistry(context.Context) error
	io.Closer
}) *Backend {
	return &Backend{
		Key:          key,
		OpenStore:    func() (segment.Store, error) { return db.Store(), nil },
		OpenRegistry: func(RegistryOptions) (worker.Registry, error) { return db.Registry(), nil },
		Tags:         Part{Create: db.Init, Made: db.Store().Exists},
		Workers:      Part{Create: func(ctx context.Context, _ []segment.Tag) error { return db.InitRegistry(ctx) }, Made: db.Registry().Exists},
		OnClose:      db.Close,
	}
}

// askAlone returns the hosts of a URL with several; open opens one of them by itself.
func askAlone(hosts []string, open func(host string) (*kv.DB, error)) []backend.Host {
	if len(hosts) < 2 {
		return nil
	}
	var all []backend.Host
	for _, host := range hosts {
		all = append(all, backend.Host{Name: host, Identities: func(ctx context.Context) (map[string]string, error) {
			db, err := open(host)
			if err != nil {
				return nil, err
			}
			defer db.Close()
			return db.Identities(ctx)
		}})
	}
	return all
}

// parseEtcd reads //user:password@h1:2379,h2:2379/prefix?parameters.
func parseEtcd(u *target) (*Backend, error) {
	if err := u.query("tls", paramCA, paramCert, paramKey, "http"); err != nil {
		return nil, err
	}
	endpoints, prefix, err := u.cluster("2379")
	if err != nil {
		return nil, err
	}
	opts := etcd.Options{Prefix: etcd.DefaultPrefix, Username: u.user, Password: u.password, Logger: u.log}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		opts.Prefix = "/" + prefix
	}
	if u.params.Has("http") {
		if opts.HTTP, err = hostPorts(u.params.Get("http"), "2379"); err != nil {
			return nil, err
		}
	}
	if opts.TLS, err = u.modeTLS(); err != nil {
		return nil, err
	}
	db, err := etcd.Open(endpoints, &opts)
	if err != nil {
		return nil, err
	}
	b := dbBackend("//"+sortedList(endpoints)+opts.Prefix, db)
	b.Hosts = askAlone(endpoints, func(host string) (*kv.DB, error) {
		opts := opts
		opts.HTTP = nil // only for the clock
		return etcd.Open([]string{host}, &opts)
	})
	return b, nil
}

// parseNATS reads //user:password@h1:4222,h2:4222/STREAM?parameters. A user without a
// password is a token.
func parseNATS(u *target) (*Backend, error) {
	if err := u.query("tls", paramCA, paramCert, paramKey, "replicas"); err != nil {
		return nil, err
	}
	servers, stream, err := u.cluster("4222")
	if err != nil {
		return nil, err
	}
	opts := nats.Options{Stream: nats.DefaultStream}
	if stream != "" {
		opts.Stream = stream
	}
	if opts.Replicas, err = u.number("replicas", 1, 5); err != nil {
		return nil, err
	}
	if u.hasPassword {
		opts.Connect = append(opts.Connect, natsio.UserInfo(u.user, u.password))
	} else if u.user != "" {
		opts.Connect = append(opts.Connect, natsio.Token(u.user))
	}
	encryption, err := u.modeTLS()
	if err != nil {
		return nil, err
	}
	if encryption != nil {
		opts.Connect = append(opts.Connect, natsio.Secure(encryption))
	}
	addresses := "nats://" + strings.Join(servers, ",nats://")
	db, err := nats.Open(addresses, &opts)
	if err != nil {
		return nil, err
	}
	b := dbBackend("//"+sortedList(servers)+"/"+opts.Stream, db)
	b.Hosts = askAlone(servers, func(host string) (*kv.DB, error) { return nats.Open("nats://"+host, &opts) })
	for _, p := range []*Part{&b.Tags, &b.Workers} {
		initialize := p.Create
		p.Create = func(ctx context.Context, tags []segment.Tag) error {
			if err := nats.Create(ctx, addresses, &opts); err != nil {
				return err
			}
			return initialize(ctx, tags)
		}
	}
	return b, nil
}
