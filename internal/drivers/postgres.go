package drivers

import (
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/leaf-id/leaf/driver/postgres"
	"github.com/leaf-id/leaf/driver/sqldb"
)

// postgresParams are those of the connection; the rest are the server's own settings, for
// each session: options sets any other one (options=-c name=value).
func postgresParams() []string {
	return []string{"host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey", "target_session_attrs", "connect_timeout",
		"search_path", "options", "application_name", "role", "statement_timeout", "lock_timeout",
		"idle_session_timeout", "idle_in_transaction_session_timeout", "default_transaction_isolation"}
}

// openPostgres reads //user:password@host:port,host:port/db?parameters. The folder of a socket may
// replace the hosts.
func openPostgres(u *target) (*Backend, error) {
	cfg, err := u.postgresConfig()
	if err != nil {
		return nil, err
	}
	names := postgresHosts(cfg)
	u.key, u.apart = "//"+sortedList(names)+"/"+cfg.Database, names
	schema := make(url.Values) // the parameters that decide on it
	for _, name := range []string{"options", "search_path"} {
		if value, ok := cfg.RuntimeParams[name]; ok {
			schema.Set(name, value)
		}
	}
	if len(schema) > 0 {
		u.key += "?" + schema.Encode()
	}
	return newBackend(newSQL(newPool(postgres.NewConnector(cfg)), postgres.New, &sqldb.Options{Logger: u.log}))
}

// postgresHosts returns the hosts of a configuration.
func postgresHosts(cfg *pgx.ConnConfig) (names []string) {
	ways := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port}}, cfg.Fallbacks...)
	for _, way := range ways { // one host has several: with and without encryption
		host := way.Host
		if !strings.HasPrefix(host, "/") { // else the folder of a socket
			host = strings.ToLower(host)
		}
		if name := net.JoinHostPort(host, strconv.Itoa(int(way.Port))); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// postgresConfig has pgx read the URL. pgx takes missing parts from PGPASSWORD, PGSSLMODE and the
// like, and from ~/.pgpass.
func (u *target) postgresConfig() (*pgx.ConnConfig, error) {
	u.cutUser()
	hosts, name, _ := strings.Cut(u.address, "/")
	settings := url.Values{"connect_timeout": {"5"}}
	if strings.Contains(hosts, ",") { // a silent one leaves a call the time for the next
		settings = url.Values{"connect_timeout": {"1"}, "target_session_attrs": {"read-write"}}
	}
	for _, name := range postgresParams() {
		if value, ok := u.param(name); ok {
			settings.Set(name, value)
		}
	}
	hosts = u.postgresSocket(hosts, settings)
	if u.only != "" {
		host, port, _ := net.SplitHostPort(u.only)
		hosts = ""
		settings.Set("host", host)
		settings.Set("port", port)
		settings.Set("target_session_attrs", "any") // a replica may answer
	}
	pgURL := url.URL{Scheme: "postgres", Host: hosts, Path: "/" + u.database(name)}
	pgURL.RawQuery = strings.ReplaceAll(settings.Encode(), "+", "%20") // pgx takes a plus for a plus
	switch {
	case u.hasPassword:
		pgURL.User = url.UserPassword(u.user, u.password)
	case u.user != "":
		pgURL.User = url.User(u.user)
	}
	cfg, err := pgx.ParseConfig(pgURL.String())
	if err != nil { // its text has the URL in quotes, and then the problem
		_, what, _ := strings.Cut(err.Error(), "`: ")
		u.malformed("pgx cannot read it: %s", what)
		return nil, u.err
	}
	cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // the driver's own mode
	return cfg, nil
}

// postgresSocket returns the hosts. The folder of a socket, percent-encoded in their place or in the
// parameter host, becomes that parameter.
func (u *target) postgresSocket(hosts string, settings url.Values) string {
	folder, err := url.PathUnescape(hosts)
	if err == nil && strings.HasPrefix(folder, "/") && !settings.Has("host") {
		hosts = ""
		settings.Set("host", folder)
	}
	if hosts == "" && strings.HasPrefix(settings.Get("host"), "/") {
		return ""
	}
	if settings.Has("host") || settings.Has("port") {
		u.malformed("host is the folder of a socket, and port the number in the socket's name, of a URL without hosts")
	}
	u.hostPorts(hosts, "5432")
	return hosts
}
