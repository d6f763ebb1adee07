package drivers

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"slices"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/driver/mysql"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/worker"
)

// The parameter that says how worker IDs are kept, and its value for uid-generator's table.
const (
	paramLayout = "layout"
	layoutNodes = "worker_node"
)

func mysqlParams() []string {
	return append(tlsParams, "tls", "timeout", "readTimeout", "writeTimeout")
}

// openMySQL reads //user:password@h1:3306,h2:3306/db?parameters.
func openMySQL(u *target) (*Backend, error) {
	u.query(append(mysqlParams(), paramLayout)...)
	layout, nodes := u.cut(paramLayout)
	if nodes && layout != layoutNodes {
		u.fail(invalid("%s %q: the only value is %s, and without it worker IDs are leased", paramLayout, layout, layoutNodes))
	}
	cfg, addrs := u.mysqlConfig()
	key, pool := u.mysqlServers(cfg, addrs)
	if u.err != nil {
		return nil, u.err
	}
	opts := &sqldb.Options{Logger: u.log}
	if nodes {
		return &Backend{Key: key + "?" + paramLayout + "=" + layoutNodes, Traits: Traits{Disposable: true}, DB: nodesDB{pool, opts}}, nil
	}
	db, err := newSQL(pool, mysql.New, opts)
	if err != nil {
		return nil, err
	}
	return newBackend(key, db, u.apart(addrs)...), nil
}

// A nodesDB is the registry in the table WORKER_NODE.
type nodesDB struct {
	*sql.DB
	opts *sqldb.Options
}

func (d nodesDB) OpenRegistry(r *RegistryOptions) (worker.Registry, error) {
	opts := &mysql.NodesOptions{Options: *d.opts, Memory: r.Memory}
	if !r.Observe {
		var err error
		if opts.Node, err = thisNode(os.Getenv); err != nil {
			return nil, err
		}
	}
	return mysql.NewNodes(d.DB, opts)
}

func (d nodesDB) InitRegistry(ctx context.Context) error {
	nodes, err := mysql.NewNodes(d.DB, &mysql.NodesOptions{Options: *d.opts})
	if err != nil {
		return err
	}
	return nodes.Init(ctx)
}

// mysqlServers returns a pool of connections to the servers, and their key, which is their set and
// the database.
func (u *target) mysqlServers(cfg *gomysql.Config, addrs []string) (key string, pool *sql.DB) {
	if u.err != nil {
		return "", nil
	}
	servers := make([]*gomysql.Config, len(addrs))
	for i, addr := range addrs {
		servers[i] = cfg.Clone()
		servers[i].Addr = addr
	}
	connector, err := mysql.NewConnector(servers, &sqldb.Options{Logger: u.log})
	if err != nil {
		u.fail(err)
		return "", nil
	}
	return "//" + sortedList(addrs) + "/" + cfg.DBName, newPool(connector)
}

// mysqlConfig returns what all servers have in common, and their addresses. A file of TLS turns on
// encryption.
func (u *target) mysqlConfig() (cfg *gomysql.Config, addrs []string) {
	u.cutUser()
	cfg = gomysql.NewConfig()
	mysql.Prepare(cfg)
	cfg.User, cfg.Passwd = u.user, u.password
	cfg.Logger = slog.NewLogLogger(u.log.Handler(), slog.LevelDebug) // it also returns the error
	hosts, name, _ := strings.Cut(u.address, "/")
	if socket, ok := strings.CutPrefix(u.address, "unix("); ok {
		cfg.Net = "unix"
		if hosts, name, ok = strings.Cut(socket, ")/"); !ok {
			u.malformed("a socket is written unix(/path)/db")
		}
		addrs = []string{hosts}
	} else {
		addrs = u.servers(hosts, "3306")
	}
	cfg.DBName = u.database(name)
	if len(addrs) > 1 {
		cfg.Timeout = 0 // the connector knows how long one server is worth waiting for
	}
	for i, addr := range addrs {
		if slices.Contains(addrs[:i], addr) {
			u.malformed("it names %s twice", addr)
		}
	}
	u.duration("timeout", &cfg.Timeout)
	u.duration("readTimeout", &cfg.ReadTimeout)
	u.duration("writeTimeout", &cfg.WriteTimeout)
	cfg.TLSConfig = u.oneOf("tls", "true", "false", "skip-verify", "preferred")
	if slices.ContainsFunc(tlsParams, u.params.Has) {
		if cfg.TLSConfig != "" && cfg.TLSConfig != "true" {
			u.malformed("ca, cert and key are for a server whose certificate is checked: write tls=true, or leave tls out")
		}
		cfg.TLS = u.cutTLS(true, "")
	}
	return cfg, addrs
}
