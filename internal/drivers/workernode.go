package drivers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/sqldb"
	"github.com/leaf-id/leaf/internal/localfs"
)

// The parameter of a worker URL that asks for uid-generator's table instead of leases.
const (
	paramLayout  = "layout"
	layoutNodes  = "worker_node"
	nodesSuffix  = "?" + paramLayout + "=" + layoutNodes
	maxStartTail = 100_000 // the random part of a port is below
)

// Disposable reports whether the worker IDs that a URL names are used for one start of
// a process each. It contacts nothing.
func Disposable(workersURL string) bool {
	src, err := findRegistry(workersURL)
	return err == nil && src.terms.Disposable
}

// An ownedNodes closes its database with itself.
type ownedNodes struct {
	*sqldb.Nodes
	db *sql.DB
}

func (o *ownedNodes) Close() error { return errors.Join(o.Nodes.Close(), o.db.Close()) }

// A nodesDriver is where a table WORKER_NODE may be. Its functions get the part of the
// URL that follows the scheme, without the layout.
type nodesDriver struct {
	open   func(rest string, o *sqldb.NodesOptions) (*sqldb.Nodes, *sql.DB, error)
	init   func(ctx context.Context, rest string) error
	exists func(ctx context.Context, rest string) (bool, error)
}

// orNodes returns the parser of worker URLs that may ask for WORKER_NODE.
func orNodes(parse func(rest string) (registrySource, error), nodes nodesDriver) func(rest string) (registrySource, error) {
	return func(rest string) (registrySource, error) {
		plain, ok, err := cutNodes(rest)
		if err != nil {
			return registrySource{}, err
		}
		src, err := parse(plain)
		if err != nil || !ok {
			return src, err
		}
		if src.terms != (Terms{}) {
			return registrySource{}, fmt.Errorf("%w: %s means nothing with %s=%s: no start waits for another one", leaf.ErrInvalid, paramClaimDelay, paramLayout, layoutNodes)
		}
		return registrySource{
			key:    src.key + nodesSuffix,
			terms:  Terms{Disposable: true},
			open:   func(o RegistryOptions) (Registry, error) { return openNodes(nodes, plain, o) },
			init:   func(ctx context.Context) error { return nodes.init(ctx, plain) },
			exists: func(ctx context.Context) (bool, error) { return nodes.exists(ctx, plain) },
		}, nil
	}
}

// cutNodes takes the layout out of a URL's query and reports whether it was there. A
// question mark that no such query follows may be one of a path, or of a password.
func cutNodes(rest string) (plain string, ok bool, err error) {
	at := strings.LastIndex(rest, "?")
	params, err := url.ParseQuery(rest[at+1:])
	if at < strings.LastIndex(rest, "@") || at < 0 || err != nil || !params.Has(paramLayout) {
		return rest, false, nil
	}
	if layout := params[paramLayout]; len(layout) != 1 || layout[0] != layoutNodes {
		return "", false, fmt.Errorf("%w: %s %q: the only value is %s, and without it worker IDs are leased", leaf.ErrInvalid, paramLayout, strings.Join(layout, ","), layoutNodes)
	}
	params.Del(paramLayout)
	if len(params) == 0 {
		return rest[:at], true, nil
	}
	return rest[:at+1] + params.Encode(), true, nil
}

func openNodes(d nodesDriver, rest string, o RegistryOptions) (Registry, error) {
	opts := &sqldb.NodesOptions{Options: sqldb.Options{Logger: o.Logger}, Memory: o.Memory}
	if !o.Observe {
		var err error
		if opts.Node, err = thisNode(os.Getenv); err != nil {
			return nil, err
		}
	}
	nodes, db, err := d.open(rest, opts)
	if err != nil {
		return nil, err
	}
	return &ownedNodes{nodes, db}, nil
}

// thisNode describes this process as uid-generator would: by what its container platform
// says, or by its address and a port that no two starts have in common.
func thisNode(env func(string) string) (sqldb.Node, error) {
	host, port := env("JPAAS_HOST"), cmp.Or(env("JPAAS_HTTP_PORT"), env("JPAAS_HOST_PORT_8080"))
	switch {
	case host != "" && port != "":
		return sqldb.Node{Host: host, Port: port, Container: true}, nil
	case host != "":
		return sqldb.Node{}, errors.New("JPAAS_HOST is set in the environment, but neither JPAAS_HTTP_PORT nor JPAAS_HOST_PORT_8080: set both for a container, or none")
	case port != "":
		return sqldb.Node{}, errors.New("JPAAS_HTTP_PORT or JPAAS_HOST_PORT_8080 is set in the environment, but not JPAAS_HOST: set both for a container, or none")
	}
	host, err := ownAddress()
	return sqldb.Node{Host: host, Port: fmt.Sprintf("%d-%d", time.Now().UnixMilli(), rand.IntN(maxStartTail))}, err
}

// ownAddress returns the first address of this machine that others may know, or its
// name.
func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err == nil {
		if address := firstGlobal(addrs); address != "" {
			return address, nil
		}
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("find this machine's address or name for WORKER_NODE: %w: set JPAAS_HOST and JPAAS_HTTP_PORT", err)
	}
	return name, nil
}

func firstGlobal(addrs []net.Addr) string {
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			return ip.IP.String()
		}
	}
	return ""
}

func sqliteNodes() nodesDriver {
	return nodesDriver{
		open: func(rest string, o *sqldb.NodesOptions) (*sqldb.Nodes, *sql.DB, error) {
			path, err := sqlitePath(rest)
			if err != nil {
				return nil, nil, err
			}
			if err := localfs.Check(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, err
			}
			o.File = path
			db, err := sqliteDB(path, "rw")
			return connected(db, err, o, sqldb.OpenSQLiteNodes)
		},
		init: func(ctx context.Context, rest string) error {
			path, err := sqlitePath(rest)
			if err == nil {
				err = checkFolder(path)
			}
			if err != nil {
				return err
			}
			db, err := sqliteDB(path, "rwc")
			if err != nil {
				return err
			}
			defer db.Close()
			return sqldb.InitSQLiteNodes(ctx, db)
		},
		exists: func(ctx context.Context, rest string) (bool, error) {
			path, err := sqlitePath(rest)
			if err != nil {
				return false, err
			}
			return withSQLite(path, func(db *sql.DB) (bool, error) { return sqldb.ExistsSQLiteNodes(ctx, db) })
		},
	}
}

func mysqlNodes() nodesDriver {
	return serverNodes(mysqlDB, sqldb.OpenMySQLNodes, sqldb.InitMySQLNodes, sqldb.ExistsMySQLNodes)
}

func postgresNodes() nodesDriver {
	connect := func(rest string, _ *slog.Logger) (*sql.DB, error) { return postgresDB(rest) }
	return serverNodes(connect, sqldb.OpenPostgresNodes, sqldb.InitPostgresNodes, sqldb.ExistsPostgresNodes)
}

// serverNodes is the driver of databases on servers.
func serverNodes(
	connect func(rest string, log *slog.Logger) (*sql.DB, error),
	open func(*sql.DB, *sqldb.NodesOptions) (*sqldb.Nodes, error),
	init func(context.Context, *sql.DB) error,
	exists func(context.Context, *sql.DB) (bool, error),
) nodesDriver {
	return nodesDriver{
		open: func(rest string, o *sqldb.NodesOptions) (*sqldb.Nodes, *sql.DB, error) {
			db, err := connect(rest, o.Logger)
			return connected(db, err, o, open)
		},
		init: func(ctx context.Context, rest string) error {
			db, err := connect(rest, nil)
			if err != nil {
				return err
			}
			defer db.Close()
			return init(ctx, db)
		},
		exists: func(ctx context.Context, rest string) (bool, error) {
			db, err := connect(rest, nil)
			if err != nil {
				return false, err
			}
			defer db.Close()
			return exists(ctx, db)
		},
	}
}

// connected opens what a database holds, unless there is none because of err.
func connected(db *sql.DB, err error, o *sqldb.NodesOptions, open func(*sql.DB, *sqldb.NodesOptions) (*sqldb.Nodes, error)) (*sqldb.Nodes, *sql.DB, error) {
	if err != nil {
		return nil, nil, err
	}
	nodes, err := open(db, o)
	if err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	return nodes, db, nil
}
