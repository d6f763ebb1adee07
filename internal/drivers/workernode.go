package drivers

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/leaf-id/leaf"
	"github.com/leaf-id/leaf/driver/mysql"
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
	*mysql.Nodes
	db *sql.DB
}

func (o *ownedNodes) Close() error { return errors.Join(o.Nodes.Close(), o.db.Close()) }

// orNodes returns the parser of MySQL URLs that may ask for WORKER_NODE.
func orNodes(parse func(rest string) (registrySource, error)) func(rest string) (registrySource, error) {
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
			open:   func(o RegistryOptions) (Registry, error) { return openNodes(plain, o) },
			init:   func(ctx context.Context) error { return initNodes(ctx, plain) },
			exists: func(ctx context.Context) (bool, error) { return existsNodes(ctx, plain) },
		}, nil
	}
}

// onlyInMySQL reports a URL that asks for WORKER_NODE where there is no such table.
func onlyInMySQL(rest string) error {
	if _, ok, err := cutNodes(rest); err != nil || !ok {
		return nil // what else may be wrong is for the scheme to say
	}
	return fmt.Errorf("%w: %s=%s is for mysql: URLs: leave it out, then worker IDs are leased, which is the default and the better choice: "+
		"a leased worker ID is used again after a restart", leaf.ErrInvalid, paramLayout, layoutNodes)
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

func openNodes(rest string, o RegistryOptions) (Registry, error) {
	opts := &mysql.NodesOptions{Options: mysql.Options{Logger: o.Logger}, Memory: o.Memory}
	if !o.Observe {
		var err error
		if opts.Node, err = thisNode(os.Getenv); err != nil {
			return nil, err
		}
	}
	db, err := mysqlDB(rest, o.Logger)
	if err != nil {
		return nil, err
	}
	nodes, err := mysql.NewNodes(db, opts)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &ownedNodes{nodes, db}, nil
}

func initNodes(ctx context.Context, rest string) error {
	db, err := mysqlDB(rest, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return mysql.InitNodes(ctx, db)
}

func existsNodes(ctx context.Context, rest string) (bool, error) {
	db, err := mysqlDB(rest, nil)
	if err != nil {
		return false, err
	}
	defer db.Close()
	return mysql.ExistsNodes(ctx, db)
}

// thisNode describes this process as uid-generator would: by what its container platform
// says, or by its address and a port that no two starts have in common.
func thisNode(env func(string) string) (mysql.Node, error) {
	host, port := env("JPAAS_HOST"), cmp.Or(env("JPAAS_HTTP_PORT"), env("JPAAS_HOST_PORT_8080"))
	switch {
	case host != "" && port != "":
		return mysql.Node{Host: host, Port: port, Container: true}, nil
	case host != "":
		return mysql.Node{}, errors.New("JPAAS_HOST is set in the environment, but neither JPAAS_HTTP_PORT nor JPAAS_HOST_PORT_8080: set both for a container, or none")
	case port != "":
		return mysql.Node{}, errors.New("JPAAS_HTTP_PORT or JPAAS_HOST_PORT_8080 is set in the environment, but not JPAAS_HOST: set both for a container, or none")
	}
	host, err := ownAddress()
	return mysql.Node{Host: host, Port: fmt.Sprintf("%d-%d", time.Now().UnixMilli(), rand.IntN(maxStartTail))}, err
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
