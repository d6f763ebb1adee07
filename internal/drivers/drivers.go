package drivers

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/internal/hint"
)

// The types of package backend, which a server knows too.
type (
	Backend         = backend.Backend
	Part            = backend.Part
	Traits          = backend.Traits
	RegistryOptions = backend.RegistryOptions
	Resize          = backend.Resize
)

// The errors of package backend.
var (
	ErrNothingToCreate = backend.ErrNothingToCreate
	ErrSeveralStores   = backend.ErrSeveralStores
)

// A driver is one way to keep tags, worker IDs, or both.
type driver struct {
	scheme string
	form   string // of the URL, for people
	open   func(*target) (*Backend, error)
}

// table is the table of drivers: a new one is a line here.
func table() []driver {
	return []driver{
		{"sqlite", "sqlite:PATH", openSQLite},
		{"mysql", "mysql://user:password@host:3306/db, or several hosts with commas, with reserved characters percent-encoded", openMySQL},
		{"postgres", "postgres://user:password@host:5432/db, or postgres://user@/db?host=/run/postgresql, with reserved characters percent-encoded", openPostgres},
		{"etcd", "etcd://h1:2379,h2:2379/prefix, or etcd://user:password@h1:2379/prefix?tls=true&ca=FILE", openEtcd},
		{"nats", "nats://h1:4222,h2:4222/STREAM, or nats://user:password@h1:4222/STREAM?tls=true&ca=FILE", openNATS},
		{"zookeeper", "zookeeper://h1:2181,h2:2181, or zookeeper://h1:2181,h2:2181/chroot?layout=leaf&name=N&port=P", openZooKeeper},
		{"ticket+mysql", "ticket+mysql://u:p@h1/db,u:p@h2/db", openTicket},
		{"static", "static:7", openStatic},
		{"redis", "redis://host:6379", openRedis},
		{"redis+sentinel", "redis+sentinel://host:26379/MASTER", openRedis},
		{"redis+cluster", "redis+cluster://host:6379", openRedis},
		{"rediss", "rediss://host:6379", openRedis},
		{"rediss+sentinel", "rediss+sentinel://host:26379/MASTER", openRedis},
		{"rediss+cluster", "rediss+cluster://host:6379", openRedis},
		{"redis+unix", "redis+unix:///run/redis/redis.sock", openRedis},
		{"cluster", "cluster:DIRECTORY?peers=h1:2380,h2:2380", openCluster},
		{"leaf", "leaf://host:8080, or leaf://TOKEN@h1:8080,h2:8080, or leaf://host:8080?token_file=FILE", openLeaf},
		{"leafs", "leafs://host:8443, or leafs://TOKEN@h1:8443,h2:8443?ca=FILE", openLeaf},
	}
}

// find returns a URL with its driver. A jdbc:mysql: URL, as in a leaf.properties, counts as a mysql:
// one, and postgresql: as postgres:.
func find(rawURL string) (*target, error) {
	scheme, rest, ok := strings.Cut(rawURL, ":")
	scheme = strings.ToLower(scheme)
	switch {
	case ok && scheme == "jdbc":
		mysqlURL, err := FromJDBC(rawURL, "", "")
		if err != nil {
			return nil, err
		}
		return find(mysqlURL)
	case scheme == "postgresql":
		scheme = "postgres"
	}
	var schemes []string
	for _, d := range table() {
		if ok && d.scheme == scheme {
			return newTarget(d, rest), onlyInMySQL(scheme, rest)
		}
		schemes = append(schemes, d.scheme)
	}
	what := "it has no scheme"
	if ok {
		what = "unknown scheme"
	}
	others := map[string]string{"mariadb": "mysql", "pg": "postgres", "file": "sqlite", "sqlite3": "sqlite", "zk": "zookeeper"}
	if near := cmp.Or(others[scheme], nearest(scheme, schemes)); ok && near != "" {
		what += fmt.Sprintf(" (did you mean %s?)", near)
	}
	return nil, invalid("%s: write it as in sqlite:PATH or mysql://user:password@host:3306/db; there are %s", what,
		strings.Join(schemes, ", "))
}

// onlyInMySQL reports a URL with WORKER_NODE for another kind of database. The path of sqlite: is
// no exception.
func onlyInMySQL(scheme, rest string) error {
	const asked = paramLayout + "=" + layoutNodes
	if scheme == "mysql" || !strings.Contains(rest[strings.LastIndex(rest, "@")+1:], asked) {
		return nil
	}
	return invalid("%s is for mysql: URLs: leave it out, then worker IDs are leased, which is the default and the better choice: "+
		"a leased worker ID is used again after a restart", asked)
}

// Open returns the backend of a URL. It neither connects nor creates anything. If the URL is
// malformed, the error wraps [leaf.ErrInvalid]. Without a logger nothing is logged.
func Open(rawURL string, logger *slog.Logger) (*Backend, error) {
	u, err := find(rawURL)
	var b *Backend
	if err == nil {
		u.log = cmp.Or(logger, u.log)
		b, err = u.backend(Redact(rawURL))
	}
	if err != nil {
		return nil, fmt.Errorf("URL %s: %w", Redact(rawURL), err)
	}
	return b, nil
}

// backend opens a URL. The first problem of the URL counts more than what the driver says of it.
func (u *target) backend(name string) (*Backend, error) {
	b, err := u.open(u)
	u.fail(err)
	if err = u.check(); err == nil {
		// Whether the way to a server is encrypted does not make it another one.
		b.Key = strings.NewReplacer("rediss", "redis", "leafs", "leaf").Replace(u.scheme) + ":" + u.key
		b.Traits, b.Hosts = u.traits, u.hosts()
		err = u.complete(b.Complete(name))
	}
	if err != nil && b != nil {
		err = errors.Join(err, b.Close())
	}
	return b, err
}

// complete refuses the parameters of worker IDs where they mean nothing.
func (u *target) complete(b *Backend) error {
	for _, name := range []string{paramReclaim, paramClaimDelay} {
		if u.params.Has(name) && b.Tags.Unfit == nil {
			b.Tags.Unfit = fmt.Errorf("%w: URL %s: %s is %w", leaf.ErrInvalid, b.Name, name, hint.ErrWorkersOnly)
		}
	}
	switch {
	case b.Traits.Reclaim && !b.Traits.Assigned:
		return invalid("%s=machine is for worker IDs that are assigned (static:, zookeeper: with layout=leaf); "+
			"here another one is claimed instead", paramReclaim)
	case b.Traits.Disposable && b.Traits.ClaimDelay != 0:
		return invalid("%s means nothing with %s=%s: no start waits for another one", paramClaimDelay, paramLayout, layoutNodes)
	}
	return nil
}

// CheckStore reports, wrapping [leaf.ErrInvalid], why a URL names no store. It contacts nothing.
func CheckStore(rawURL string) error {
	b, err := Open(rawURL, nil)
	if err != nil {
		return err
	}
	return errors.Join(b.Tags.Unfit, b.Close())
}

// CheckRegistry is CheckStore for registries of worker IDs.
func CheckRegistry(rawURL string) error {
	b, err := Open(rawURL, nil)
	if err != nil {
		return err
	}
	return errors.Join(b.Workers.Unfit, b.Close())
}
