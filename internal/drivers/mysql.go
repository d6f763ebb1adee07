package drivers

import (
	"cmp"
	"context"
	"database/sql"
	"log/slog"
	"net/url"
	"os"
	"slices"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/backend"
	"github.com/leaf-id/leaf/segment"
	"github.com/leaf-id/leaf/worker"
)

// The parameter that says how worker IDs are kept, and its value for uid-generator's table.
const (
	paramLayout = "layout"
	layoutNodes = "worker_node"
)

func mysqlParams() []string {
	return []string{"tls", paramCA, paramCert, paramKey, "timeout", "readTimeout", "writeTimeout"}
}

// parseMySQL reads //user:password@h1:3306,h2:3306/db?parameters.
func parseMySQL(u *target) (*Backend, error) {
	if err := u.query(append(mysqlParams(), paramLayout)...); err != nil {
		return nil, err
	}
	if u.params.Has(paramLayout) && u.params.Get(paramLayout) != layoutNodes {
		return nil, invalid("%s %q: the only value is %s, and without it worker IDs are leased", paramLayout, u.params.Get(paramLayout), layoutNodes)
	}
	key, servers, err := u.mysqlServers()
	if err != nil {
		return nil, err
	}
	pool, err := u.mysqlPool(servers)
	if err != nil {
		return nil, err
	}
	opts := &sqldb.Options{Logger: u.log}
	if u.params.Has(paramLayout) {
		return nodesBackend(key, pool, opts), nil
	}
	db, err := mysql.New(pool, opts)
	b, err := sqlBackend(key, pool, db, err)
	if err == nil {
		b.Hosts = mysqlAlone(servers)
	}
	return b, err
}

// mysqlAlone returns the hosts of a URL with several. A replica can be asked too.
func mysqlAlone(servers []*gomysql.Config) []backend.Host {
	names := make([]string, len(servers))
	for i, server := range servers {
		names[i] = server.Addr
	}
	return askDatabases(names, func(i int) (*sql.DB, error) {
		connector, err := gomysql.NewConnector(servers[i])
		if err != nil {
			return nil, err
		}
		return sql.OpenDB(connector), nil
	})
}

// nodesBackend returns the registry in the table WORKER_NODE.
func nodesBackend(key string, db *sql.DB, o *sqldb.Options) *Backend {
	observer := func() *mysql.Nodes {
		n, _ := mysql.NewNodes(db, &mysql.NodesOptions{Options: *o}) // which fails without a database only
		return n
	}
	return &Backend{
		Key:    key + "?" + paramLayout + "=" + layoutNodes,
		Traits: Traits{Disposable: true},
		OpenRegistry: func(r RegistryOptions) (worker.Registry, error) {
			opts := &mysql.NodesOptions{Options: *o, Memory: r.Memory}
			if !r.Observe {
				var err error
				if opts.Node, err = thisNode(os.Getenv); err != nil {
					return nil, err
				}
			}
			return mysql.NewNodes(db, opts)
		},
		Workers: Part{
			Create: func(ctx context.Context, _ []segment.Tag) error { return observer().Init(ctx) },
			Made:   func(ctx context.Context) (bool, error) { return observer().Exists(ctx) },
		},
		OnClose: db.Close,
	}
}

// mysqlServers returns the servers of a URL, and its key, which is their set and the database.
func (u *target) mysqlServers() (key string, servers []*gomysql.Config, err error) {
	cfg, addrs, err := u.mysqlConfig()
	if err != nil {
		return "", nil, err
	}
	servers = make([]*gomysql.Config, len(addrs))
	for i, addr := range addrs {
		servers[i] = cfg.Clone()
		servers[i].Addr = addr
	}
	return "//" + sortedList(addrs) + "/" + cfg.DBName, servers, nil
}

// mysqlPool returns a pool of connections to the servers.
func (u *target) mysqlPool(servers []*gomysql.Config) (*sql.DB, error) {
	connector, err := mysql.NewConnector(servers, &sqldb.Options{Logger: u.log})
	if err != nil {
		return nil, err
	}
	return newPool(connector), nil
}

// mysqlConfig returns what all servers have in common, and their addresses.
func (u *target) mysqlConfig() (cfg *gomysql.Config, addrs []string, err error) {
	if err := u.cutUser(); err != nil {
		return nil, nil, err
	}
	cfg = gomysql.NewConfig()
	mysql.Prepare(cfg)
	cfg.User, cfg.Passwd = u.user, u.password
	cfg.Logger = slog.NewLogLogger(u.log.Handler(), slog.LevelDebug) // it also returns the error
	hosts, name, _ := strings.Cut(u.address, "/")
	if socket, ok := strings.CutPrefix(u.address, "unix("); ok {
		cfg.Net = "unix"
		if hosts, name, ok = strings.Cut(socket, ")/"); !ok {
			return nil, nil, malformed("a socket is written unix(/path)/db")
		}
		addrs = []string{hosts}
	} else if addrs, err = hostPorts(hosts, "3306"); err != nil {
		return nil, nil, err
	}
	if cfg.DBName, err = url.PathUnescape(name); err != nil || cfg.DBName == "" || strings.Contains(name, "/") {
		return nil, nil, malformed("the name of the database is missing or malformed")
	}
	if len(addrs) > 1 {
		cfg.Timeout = 0 // the connector knows how long one server is worth waiting for
	}
	for i, addr := range addrs {
		if slices.Contains(addrs[:i], addr) {
			return nil, nil, malformed("it names " + addr + " twice")
		}
	}
	return cfg, addrs, u.setMySQL(cfg)
}

// setMySQL applies the parameters. A file of TLS turns on encryption.
func (u *target) setMySQL(cfg *gomysql.Config) (err error) {
	if err := cmp.Or(u.duration("timeout", &cfg.Timeout), u.duration("readTimeout", &cfg.ReadTimeout),
		u.duration("writeTimeout", &cfg.WriteTimeout)); err != nil {
		return err
	}
	if err := u.oneOf("tls", "true", "false", "skip-verify", "preferred"); err != nil {
		return err
	}
	cfg.TLSConfig = u.params.Get("tls")
	if !u.params.Has(paramCA) && !u.params.Has(paramCert) && !u.params.Has(paramKey) {
		return nil
	}
	if cfg.TLSConfig != "" && cfg.TLSConfig != "true" {
		return malformed("ca, cert and key are for a server whose certificate is checked: write tls=true, or leave tls out")
	}
	cfg.TLS, err = u.cutTLS(true, "")
	return err
}
