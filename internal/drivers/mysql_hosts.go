package drivers

import (
	"net/url"
	"slices"
	"strings"

	gomysql "github.com/go-sql-driver/mysql"

	"github.com/leaf-id/leaf/driver/mysql"
)

// mysqlServers returns the configurations of the servers that a URL names,
// //user:password@h1:3306,h2:3306/db?parameters, in its order. They differ in Addr.
func mysqlServers(rest string) ([]*gomysql.Config, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return nil, badMySQL("two slashes are missing after mysql:")
	}
	cfg := gomysql.NewConfig()
	mysql.Prepare(cfg)
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		if err := setUser(cfg, rest[:at]); err != nil {
			return nil, err
		}
		rest = rest[at+1:]
	}
	address, query, _ := strings.Cut(rest, "?")
	addrs, err := setDatabase(cfg, address)
	if err != nil {
		return nil, err
	}
	if len(addrs) > 1 {
		cfg.Timeout = 0 // the connector knows how long one server is worth waiting for
	}
	if err := setParameters(cfg, query); err != nil {
		return nil, err
	}
	servers := make([]*gomysql.Config, len(addrs))
	for i, addr := range addrs {
		servers[i] = cfg.Clone()
		servers[i].Addr = addr
	}
	return servers, nil
}

// setDatabase reads the hosts, or a socket, and the database, and returns the addresses.
func setDatabase(cfg *gomysql.Config, address string) (addrs []string, err error) {
	hosts, name, _ := strings.Cut(address, "/")
	if socket, ok := strings.CutPrefix(address, "unix("); ok {
		cfg.Net = "unix"
		if hosts, name, ok = strings.Cut(socket, ")/"); !ok {
			return nil, badMySQL("a socket is written unix(/path)/db")
		}
		addrs = []string{hosts}
	} else if addrs, err = tcpAddresses(hosts); err != nil {
		return nil, err
	} else {
		cfg.Net = "tcp"
	}
	if cfg.DBName, err = url.PathUnescape(name); err != nil || cfg.DBName == "" || strings.Contains(name, "/") {
		return nil, badMySQL("the name of the database is missing or malformed")
	}
	return addrs, nil
}

func tcpAddresses(hosts string) ([]string, error) {
	var addrs []string
	for host := range strings.SplitSeq(hosts, ",") {
		addr, ok := hostPort(host, mysqlPort)
		switch {
		case !ok:
			return nil, badMySQL("a host or its port is malformed")
		case slices.Contains(addrs, addr):
			return nil, badMySQL("it names " + addr + " twice")
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

// keyMySQL returns the set of the servers and the database: their order is of no account.
func keyMySQL(rest string) (string, error) {
	servers, err := mysqlServers(rest)
	if err != nil {
		return "", err
	}
	addrs := make([]string, len(servers))
	for i, cfg := range servers {
		addrs[i] = strings.ToLower(cfg.Addr)
	}
	slices.Sort(addrs)
	return "//" + strings.Join(addrs, ",") + "/" + servers[0].DBName, nil
}
