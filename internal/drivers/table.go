package drivers

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/leaf-id/leaf"
)

// A driver is one way to keep tags, worker IDs, or both.
type driver struct {
	scheme string
	form   string // of the URL, for people
	parse  func(*target) (*Backend, error)
}

// table is the table of drivers: a new one is a line here.
func table() []driver {
	return append([]driver{
		{"sqlite", "sqlite:PATH", parseSQLite},
		{"mysql", "mysql://user:password@host:3306/db, or several hosts with commas, with reserved characters percent-encoded", parseMySQL},
		{"postgres", "postgres://user:password@host:5432/db, or postgres://user@/db?host=/run/postgresql, with reserved characters percent-encoded", parsePostgres},
		{"etcd", "etcd://h1:2379,h2:2379/prefix, or etcd://user:password@h1:2379/prefix?tls=true&ca=FILE", parseEtcd},
		{"nats", "nats://h1:4222,h2:4222/STREAM, or nats://user:password@h1:4222/STREAM?tls=true&ca=FILE", parseNATS},
		{"zookeeper", "zookeeper://h1:2181,h2:2181, or zookeeper://h1:2181,h2:2181/chroot?layout=leaf&name=N&port=P", parseZooKeeper},
		{"ticket+mysql", "ticket+mysql://u:p@h1/db,u:p@h2/db", parseTicket},
		{"static", "static:7", parseStatic},
	}, redisDrivers()...)
}

// redisDrivers returns the drivers of Redis: for each way in which servers may stand to
// each other one, and one over TLS.
func redisDrivers() []driver {
	drivers := []driver{
		{"redis", "redis://host:6379", parseRedis},
		{"redis+sentinel", "redis+sentinel://host:26379/MASTER", parseRedis},
		{"redis+cluster", "redis+cluster://host:6379", parseRedis},
	}
	for _, d := range drivers {
		secure := func(s string) string { return strings.Replace(s, "redis", "rediss", 1) }
		drivers = append(drivers, driver{secure(d.scheme), secure(d.form), d.parse})
	}
	return append(drivers, driver{"redis+unix", "redis+unix:///run/redis/redis.sock", parseRedis})
}

// keyScheme returns the scheme of a key: whether the way to a server is encrypted does
// not make it another one.
func keyScheme(scheme string) string { return strings.Replace(scheme, "rediss", "redis", 1) }

// otherNames are schemes that people may expect.
func otherNames() map[string]string {
	return map[string]string{"mariadb": "mysql", "pg": "postgres", "file": "sqlite", "sqlite3": "sqlite", "zk": "zookeeper"}
}

// find returns the driver of a URL and what it gets of it. A jdbc:mysql: URL, as it
// stands in a leaf.properties, is another way to write a mysql: one, and postgresql: is
// postgres:.
func find(rawURL string) (driver, *target, error) {
	scheme, rest, ok := strings.Cut(rawURL, ":")
	scheme = strings.ToLower(scheme)
	if ok && scheme == "jdbc" {
		mysqlURL, err := FromJDBC(rawURL, "", "")
		if err != nil {
			return driver{}, nil, err
		}
		return find(mysqlURL)
	}
	if scheme == "postgresql" {
		scheme = "postgres"
	}
	var schemes []string
	for _, d := range table() {
		if ok && d.scheme == scheme {
			if asked := paramLayout + "=" + layoutNodes; scheme != "mysql" && strings.Contains(rest[strings.LastIndex(rest, "@")+1:], asked) {
				return driver{}, nil, invalid("%s is for mysql: URLs: leave it out, then worker IDs are leased, which is the default and the better choice: "+
					"a leased worker ID is used again after a restart", asked)
			}
			return d, &target{scheme: scheme, rest: rest}, nil
		}
		schemes = append(schemes, d.scheme)
	}
	what := "unknown scheme"
	if near := cmp.Or(otherNames()[scheme], nearest(scheme, schemes)); !ok {
		what = "it has no scheme"
	} else if near != "" {
		what += fmt.Sprintf(" (did you mean %s?)", near)
	}
	return driver{}, nil, fmt.Errorf("%w: %s: write it as in sqlite:PATH or mysql://user:password@host:3306/db; there are %s",
		leaf.ErrInvalid, what, strings.Join(schemes, ", "))
}
