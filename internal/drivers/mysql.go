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

// openMySQL reads //user:password@h1:3306,h2:3306/db?parameters.
func openMySQL(u *target) (*Backend, error) {
	layout, nodes := u.param(paramLayout)
	if nodes && layout != layoutNodes {
		u.fail(invalid("%s %q: the only value is %s, and without it worker IDs are leased", paramLayout, layout, layoutNodes))
	}
	connector := u.mysqlConnector()
	if u.err != nil {
		return nil, u.err
	}
	pool, opts := newPool(connector), &sqldb.Options{Logger: u.log}
	if nodes {
		u.key += "?" + paramLayout + "=" + layoutNodes
		u.apart, u.traits.Disposable = nil, true
		return &Backend{DB: nodesDB{pool, opts}}, nil
	}
	return newBackend(newSQL(pool, mysql.New, opts))
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

// mysqlConnector connects to the servers of a URL; nil if that is malformed.
func (u *target) mysqlConnector() *mysql.Connector {
	servers := u.mysqlServers()
	if u.err != nil {
		return nil
	}
	connector, err := mysql.NewConnector(servers, &sqldb.Options{Logger: u.log})
	u.fail(err)
	return connector
}

// mysqlServers returns the configuration of each server. A file of TLS turns on encryption.
func (u *target) mysqlServers() (servers []*gomysql.Config) {
	u.cutUser()
	cfg := gomysql.NewConfig()
	mysql.Prepare(cfg)
	cfg.User, cfg.Passwd = u.user, u.password
	cfg.Logger = slog.NewLogLogger(u.log.Handler(), slog.LevelDebug) // it also returns the error
	hosts, name, _ := strings.Cut(u.address, "/")
	var addrs []string
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
	u.duration("timeout", &cfg.Timeout)
	u.duration("readTimeout", &cfg.ReadTimeout)
	u.duration("writeTimeout", &cfg.WriteTimeout)
	cfg.TLSConfig = u.oneOf("tls", "true", "false", "skip-verify", "preferred")
	files := slices.ContainsFunc([]string{"ca", "cert", "key"}, u.params.Has)
	if files && cfg.TLSConfig != "" && cfg.TLSConfig != "true" {
		u.malformed("ca, cert and key are for a server whose certificate is checked: write tls=true, or leave tls out")
	}
	cfg.TLS = u.tlsConfig(files, "")
	u.key, u.apart = "//"+sortedList(addrs)+"/"+cfg.DBName, addrs
	for i, addr := range addrs {
		if slices.Contains(addrs[:i], addr) {
			u.malformed("it names %s twice", addr)
		}
		servers = append(servers, cfg.Clone())
		servers[i].Addr = addr
	}
	return servers
}
